//! Claims of devices. They prevent two routers of one law from both counting a device's packets.
//!
//! A claim is a lock on a file in a folder that only this user can enter, so no other user can hold it. The kernel releases
//! it with the process. The file's name has the network namespace, as devices in two namespaces may have one name.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::safety;
use crate::daemon::options::error::user_error;

/// Folder for the daemon's files at run time.
pub(crate) const FOLDER: &str = "/run/waterfill";

/// Claim of a device, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // still locked, so it is not another process's
    }
}

/// Creates the folder of running daemons with mode 0700, or gives an existing folder this mode. Fails if another user
/// could write into the folder.
pub(crate) fn folder() -> Result<PathBuf> {
    let folder = PathBuf::from(FOLDER);
    safety::make_folder(&folder)?;
    Ok(folder)
}

/// Claims a device of this network namespace for a law. Fails while another process holds the claim.
pub(crate) fn device(law: &LoadableLaw, device: &str) -> Result<Claim> {
    claim("router", &router(law), device)
}

/// Claims a device of this network namespace for CSIG's tags. Fails while another process holds the claim.
pub(crate) fn tags(device: &str) -> Result<Claim> {
    claim("csig", "csig", device)
}

fn claim(command: &str, what: &str, device: &str) -> Result<Claim> {
    let path = path_in(&folder()?, what, device)?;
    match lock(&path)? {
        Some(lock) => Ok(Claim { path, _lock: lock }),
        None => bail!("device {device} is in use by another waterfilld {command}; stop it first"),
    }
}

/// Returns true if a running router of this law has claimed a device of this network namespace.
pub(crate) fn is_claimed(law: &LoadableLaw, device: &str) -> Result<bool> {
    let path = path_in(Path::new(FOLDER), &router(law), device)?;
    let Ok(file) = File::open(&path) else { return Ok(false) };
    Ok(matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EWOULDBLOCK))))
}

/// Removes the lock files that killed processes left. A file that cannot be removed does no harm.
///
/// Not for a start: for a moment it holds a file that another start may want.
pub(crate) fn remove_leftovers() {
    remove_leftovers_in(Path::new(FOLDER));
}

fn remove_leftovers_in(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = ["router-", "csig-"].iter().any(|start| name.starts_with(start))
            && path.extension().is_some_and(|is| is == "lock");
        if ours {
            // Dropping the claim removes its file.
            drop(lock(&path).ok().flatten().map(|lock| Claim { path, _lock: lock }));
        }
    }
}

fn router(law: &LoadableLaw) -> String {
    format!("router-{}", law.name)
}

fn path_in(folder: &Path, what: &str, device: &str) -> Result<PathBuf> {
    let namespace = fs::metadata("/proc/thread-self/ns/net").context("cannot identify the network namespace")?.ino();
    // A device's name has no slash.
    Ok(folder.join(format!("{what}-{namespace}-{device}.lock")))
}

/// Locks a file, which is created if it does not exist. Returns `None` if another process has locked it.
fn lock(path: &Path) -> Result<Option<Flock<File>>> {
    loop {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, e)) => return Err(user_error(format!("cannot lock {}: {}", path.display(), e.desc()))),
        };
        // Its last holder may have removed the file between opening and locking: then the lock has no effect.
        if fs::metadata(path).is_ok_and(|now| lock.metadata().is_ok_and(|held| now.ino() == held.ino())) {
            return Ok(Some(lock));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_excludes_others_and_ends_without_a_file() {
        let folder = std::env::temp_dir().join(format!("waterfill-claim-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = path_in(&folder, "router-maxnet", "eth0").unwrap();
        assert_ne!(path, path_in(&folder, "router-maxnet", "eth1").unwrap());
        let first = Claim { path: path.clone(), _lock: lock(&path).unwrap().unwrap() };
        assert!(lock(&path).unwrap().is_none());
        drop(first);
        assert!(!path.exists());
        // A killed process leaves the file, which then is nobody's.
        fs::write(&path, "").unwrap();
        drop(Claim { path: path.clone(), _lock: lock(&path).unwrap().unwrap() });
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn files_of_killed_processes_are_removed_and_no_others() {
        let folder = std::env::temp_dir().join(format!("waterfill-leftovers-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = |what, device| path_in(&folder, what, device).unwrap();
        let held = Claim { path: path("csig", "eth0"), _lock: lock(&path("csig", "eth0")).unwrap().unwrap() };
        for left in [path("router-rcp", "eth0"), path("csig", "eth1"), folder.join("control.sock")] {
            fs::write(left, "").unwrap();
        }
        remove_leftovers_in(&folder);
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert_eq!(names, [folder.join("control.sock"), held.path.clone()]);
        drop(held);
        fs::remove_dir_all(&folder).unwrap();
    }
}

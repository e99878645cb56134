//! Pins on a BPF file system: programs, maps and links that outlive the process.
//!
//! `<bpffs>/waterfill/host` and `…/router` belong to one role each, with everything in them. A daemon locks its role's
//! folder, so that two daemons do not undo each other's work. The lock is on the folder itself and leaves no file. Folders have mode 0700, and one that another user
//! owns or can write is refused: its pins would be programs and maps of that user.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use libbpf_rs::{MapCore as _, MapHandle};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::law::LoadableLaw;
use super::laws;
use super::safety;
use crate::daemon::options::error::user_error;

/// Usual mount point of the BPF file system, a folder that the kernel provides.
const MOUNT_POINT: &str = "/sys/fs/bpf";
/// Source name of mounts that the daemon made, by which `unload` recognises them.
const SOURCE: &str = "waterfill";

/// Role of a daemon on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Host role: registers a law as TCP congestion control and processes its option.
    Host,
    /// Router role: computes the congestion signals of links.
    Router,
    /// CSIG role: adds tags at devices, independently of a law.
    Csig,
}

impl Role {
    /// Returns the name of the role's command and folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Router => "router",
            Self::Csig => "csig",
        }
    }
}

/// Names of a role's pins in its folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinNames {
    pub(crate) role: Role,
    /// Names of pins, or paths relative to the folder of all pins.
    pub(crate) names: &'static [&'static str],
    /// Prefixes of names that end with the index of a device, such as `device-`.
    pub(crate) by_device: &'static [&'static str],
}

impl PinNames {
    fn contain(&self, name: &str) -> bool {
        let index = |prefix| name.strip_prefix(prefix).is_some_and(|index: &str| index.parse::<u32>().is_ok());
        self.names.iter().any(|own| own.rsplit('/').next() == Some(name)) || self.by_device.iter().any(index)
    }
}

/// Folder of all pins. Without a folder, nothing is pinned and everything ends with the process.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    folder: Option<PathBuf>,
    /// Parent of the law's folder, or `None` for the default law.
    parent: Option<PathBuf>,
}

/// Lock of a role's folder, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "holds the lock")] Option<Flock<File>>);

impl Pins {
    /// Returns pins without a folder, with which nothing is pinned.
    pub(crate) fn none() -> Self {
        Self { folder: None, parent: None }
    }

    /// Opens `folder`, or the folder `waterfill` on the first BPF file system. Mounts a BPF file system if there is
    /// none.
    pub(crate) fn open(folder: Option<PathBuf>) -> Result<Self> {
        if let Some(found) = Self::find(folder)? {
            return Ok(found);
        }
        mount(
            Some(SOURCE),
            MOUNT_POINT,
            Some("bpf"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
            Some("mode=0700"),
        )
        .map_err(|e| {
            user_error(format!("no BPF file system is mounted, and mounting one at {MOUNT_POINT} failed: {}", e.desc()))
        })?;
        tracing::info!("mounted a BPF file system at {MOUNT_POINT}");
        if fs::read_link("/proc/self/ns/mnt").ok() != fs::read_link("/proc/1/ns/mnt").ok() {
            tracing::warn!(
                "this process has its own mount namespace (as under `ip netns exec`): pins are visible only there and end with it; \
                 `nsenter --net` enters a network namespace without one"
            );
        }
        Ok(Self { folder: Some(Path::new(MOUNT_POINT).join("waterfill")), parent: None })
    }

    /// Returns the pins of a law. Each law except the default has its own folder.
    pub(crate) fn of(&self, law: &LoadableLaw) -> Self {
        if law.is_default() {
            return self.clone();
        }
        Self { folder: self.folder.as_ref().map(|folder| folder.join(law.name)), parent: self.folder.clone() }
    }

    /// Opens pins as [`Pins::open`] does, but mounts nothing. Returns `None` if no folder is given and no BPF file
    /// system is mounted.
    pub(crate) fn find(folder: Option<PathBuf>) -> Result<Option<Self>> {
        let folder = match folder {
            Some(folder) => check_folder(&folder)?,
            None => match bpf_mounts()?.first() {
                Some(mount) => mount.point.join("waterfill"),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { folder: Some(folder), parent: None }))
    }

    /// Returns the path of a pin such as "router/links", or `None` if nothing is pinned. The pin's folder exists while
    /// its role is locked.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// Returns true if a role's folder exists. Then something is pinned, or a process died while pinning.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.path(role.name()).is_some_and(|folder| folder.is_dir())
    }

    /// Creates a role's folder and locks it. Fails while another process holds the lock.
    pub(crate) fn lock(&self, role: Role) -> Result<Lock> {
        let Some(folder) = self.path(role.name()) else { return Ok(Lock(None)) };
        loop {
            for folder in self.parent.iter().chain(&self.folder).chain([&folder]) {
                safety::make_folder(folder)?;
            }
            let file = match File::open(&folder) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue, // another process has just unloaded
                opened => opened.with_context(|| format!("cannot open {}", folder.display()))?,
            };
            let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((file, Errno::EWOULDBLOCK)) => {
                    let holder = holder(&file).map_or_else(String::new, |process| format!(" (process {process})"));
                    bail!(
                        "{} is in use by another waterfilld {}{holder}; stop it first",
                        folder.display(),
                        role.name()
                    );
                }
                Err((_, e)) => bail!("cannot lock {}: {}", folder.display(), e.desc()),
            };
            // An unload may have removed the folder between opening and locking: then the lock has no effect.
            if fs::metadata(&folder).is_ok_and(|now| lock.metadata().is_ok_and(|held| now.ino() == held.ino())) {
                return Ok(Lock(Some(lock)));
            }
        }
    }

    /// Removes these pins of a role, then the role's folder, the `waterfill` folder and the daemon's mount if they are
    /// empty. Other entries stay and are logged.
    pub(crate) fn remove(&self, names: &PinNames) -> Result<()> {
        let (Some(root), Some(folder)) = (&self.folder, self.path(names.role.name())) else { return Ok(()) };
        let mut others = remove_known(&folder, |name| names.contain(name))?;
        let ours = |name: &str| {
            [Role::Host, Role::Router, Role::Csig].map(Role::name).contains(&name) || laws::find(name).is_ok()
        };
        others.extend(names_in(root)?.into_iter().filter(|name| !ours(name)).map(|name| root.join(name)));
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(|path| path.display().to_string()).collect();
            tracing::warn!("left as they are, since waterfilld did not make them: {}", others.join(", "));
        }
        for folder in [&folder, root].into_iter().chain(&self.parent) {
            match fs::remove_dir(folder) {
                Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {}
                done => done.with_context(|| format!("cannot remove {}", folder.display()))?,
            }
        }
        let ours = bpf_mounts()?.into_iter().find(|mount| mount.source == SOURCE && root.starts_with(&mount.point));
        if let Some(ours) = ours {
            if is_empty(&ours.point)? {
                // The locked folder is still open: detach the mount now, and the kernel frees it when that closes.
                umount2(&ours.point, MntFlags::MNT_DETACH)
                    .with_context(|| format!("cannot unmount {}", ours.point.display()))?;
            }
        }
        Ok(())
    }

    /// Describes the location of pins, for messages.
    pub(crate) fn describe(&self) -> String {
        self.folder
            .as_ref()
            .map_or_else(|| "nothing is pinned".into(), |folder| format!("pins are in {}", folder.display()))
    }
}

/// Removes the entries of a folder for which `known` returns true. Returns the paths of all others.
fn remove_known(folder: &Path, known: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut others = Vec::new();
    for name in names_in(folder)? {
        let path = folder.join(&name);
        if known(&name) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        } else {
            others.push(path);
        }
    }
    Ok(others)
}

/// Lists the names in a folder, sorted. A missing folder has none.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names =
        names.collect::<Result<Vec<_>, _>>().with_context(|| format!("cannot read {}", folder.display()))?;
    names.sort();
    Ok(names)
}

/// Returns true if a BPF file system has no entries except `maps.debug` and `progs.debug`, which the kernel creates.
fn is_empty(mount: &Path) -> std::io::Result<bool> {
    let mut names = fs::read_dir(mount)?.map(|entry| entry.map(|entry| entry.file_name()));
    names.try_fold(true, |empty, name| name.map(|name| empty && (name == "maps.debug" || name == "progs.debug")))
}

/// Returns true if a map is pinned under this name on any BPF file system that is mounted here.
pub(crate) fn is_pinned(map_id: u32, name: &str) -> Result<bool> {
    let mut folders: Vec<PathBuf> = bpf_mounts()?.into_iter().map(|mount| mount.point).collect();
    while let Some(folder) = folders.pop() {
        // Folders come and go meanwhile.
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|found| found == name) {
                let id = MapHandle::from_pinned_path(&path).and_then(|map| map.info()).map(|info| info.info.id);
                if id.is_ok_and(|id| id == map_id) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Checks that the nearest existing ancestor of a folder is on a BPF file system. Returns the absolute path of the
/// folder.
fn check_folder(folder: &Path) -> Result<PathBuf> {
    let folder = std::path::absolute(folder).with_context(|| format!("--pins {}", folder.display()))?;
    for ancestor in folder.ancestors() {
        match statfs(ancestor) {
            Ok(found) if found.filesystem_type() == BPF_FS_MAGIC => return Ok(folder),
            Err(Errno::ENOENT) => {}
            Err(e) => return Err(user_error(format!("--pins {}: {}", folder.display(), e.desc()))),
            Ok(_) => break,
        }
    }
    Err(user_error(format!("--pins {}: not on a BPF file system; mount one with mount -t bpf", folder.display())))
}

/// Returns the id of the process that has locked `file`, or `None` if /proc/locks has no such lock.
fn holder(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // "1: FLOCK  ADVISORY  WRITE 1234 00:1b:5678 0 EOF"
    let mut held = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    held.find(|l| l.get(1) == Some(&"FLOCK") && l.get(5).is_some_and(|at| at.ends_with(&inode)))?.get(4)?.parse().ok()
}

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    source: String,
}

fn bpf_mounts() -> Result<Vec<Mount>> {
    mounts_of("bpf")
}

/// Returns the mounts of one file system type, in the order of mounting.
pub(crate) fn mounts_of(kind: &str) -> Result<Vec<Mount>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")?;
    Ok(mounts(&table, kind))
}

/// Parses a mount table of lines such as "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2
/// rw" (proc(5)).
fn mounts(table: &str, kind: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' '), after.split(' '));
        let (root, point) = (before.nth(3)?, before.next()?);
        // Skip bind mounts of a part of a file system.
        let whole = root == "/" && after.next()? == kind;
        whole.then(|| Some(Mount { point: PathBuf::from(unescaped(point)), source: unescaped(after.next()?) }))?
    };
    table.lines().filter_map(parse).collect()
}

/// Decodes the octal escapes of blanks, tabs, newlines and backslashes.
fn unescaped(text: &str) -> String {
    let mut out = text.to_owned();
    for (code, sign) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        out = out.replace(code, sign);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
50 23 0:40 /sub /mnt/part rw - bpf bpf rw
51 23 0:40 / /mnt/b\\040p\\134f rw,nosuid shared:2 master:1 - bpf waterfill rw,mode=700
52 23 0:41 / /sys/fs/bpf rw - bpf none rw
not a line
";

    const OURS: PinNames =
        PinNames { role: Role::Router, names: &["law", "links"], by_device: &["device-", "cohabit-"] };

    #[test]
    fn mounts_are_found_by_type_and_whole() {
        let found = |kind: &str| mounts(TABLE, kind).into_iter().map(|m| m.point).collect::<Vec<_>>();
        assert_eq!(found("cgroup2"), [PathBuf::from("/sys/fs/cgroup/unified")]);
        assert_eq!(found("bpf"), [PathBuf::from("/mnt/b p\\f"), PathBuf::from("/sys/fs/bpf")]);
        assert_eq!(mounts(TABLE, "bpf")[0].source, "waterfill");
        assert_eq!(found("ext4"), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_folder_on_another_file_system_is_refused() {
        let why = Pins::find(Some("/proc/self/there/is/none".into())).unwrap_err().to_string();
        assert!(why.starts_with("--pins /proc/self/there") && why.contains("BPF file system"), "{why}");
    }

    #[test]
    fn only_names_of_ours_are_removed() {
        let known = |names: &[&str]| names.iter().filter(|name| OURS.contain(name)).count();
        assert_eq!(known(&["law", "links", "device-3", "cohabit-12"]), 4);
        assert_eq!(known(&["", "device-", "device-x", "device-3.old", "laws", "router/law", "other"]), 0);
        let folder = std::env::temp_dir().join(format!("waterfill-pins-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        for name in ["law", "other", "another"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let left = remove_known(&folder, |name| OURS.contain(name)).unwrap();
        assert_eq!(left, [folder.join("another"), folder.join("other")]);
        assert_eq!(names_in(&folder).unwrap(), ["another", "other"]);
        fs::remove_dir_all(&folder).unwrap();
        assert!(remove_known(&folder, |_| true).unwrap().is_empty());
    }

    #[test]
    fn without_pins_there_are_no_paths() {
        let pins = Pins::none();
        assert_eq!(pins.path("router/links"), None);
        assert!(!pins.has(Role::Router));
        pins.lock(Role::Router).unwrap();
        pins.remove(&OURS).unwrap();
    }
}

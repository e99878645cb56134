//! Checks of folders that nobody except this user and root may change.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use nix::unistd::Uid;

use crate::daemon::options::error::user_error;

/// Mode of the daemon's folders.
const PRIVATE: u32 = 0o700;
/// Mode bits of a folder that the group or others may write. With [`STICKY`], only the owner of an entry may rename or
/// remove it.
const WRITTEN_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Creates a folder of mode 0700 with its missing parents. On an existing folder, removes others' permissions. Fails if
/// another user could replace the folder or write into it.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev() {
        match DirBuilder::new().mode(PRIVATE).create(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {} // another process was faster
            done => done.with_context(|| format!("cannot make {}", path.display()))?,
        }
    }
    check_folder(folder)?;
    let mode = metadata(folder)?.permissions().mode();
    if mode & 0o777 != PRIVATE {
        let private = Permissions::from_mode(PRIVATE);
        fs::set_permissions(folder, private).with_context(|| format!("cannot protect {}", folder.display()))?;
    }
    Ok(())
}

/// Checks that no other user can write into a folder or replace it. Missing folders are skipped.
pub(crate) fn check_folder(folder: &Path) -> Result<()> {
    // Where links lead, too; who owns a link can change it.
    let real = folder.ancestors().skip(1).find_map(|above| fs::canonicalize(above).ok()).unwrap_or_default();
    let all = folder.ancestors().enumerate().chain(real.ancestors().enumerate().map(|(n, path)| (n + 1, path)));
    for (depth, path) in all {
        if path.as_os_str().is_empty() || fs::symlink_metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            continue;
        }
        if let Some(why) = fault(&metadata(path)?, Uid::effective().as_raw(), depth > 0) {
            let folder = path.display();
            return Err(user_error(format!("{folder}: {why}; use a folder that only this user or root can write")));
        }
    }
    Ok(())
}

fn metadata(path: &Path) -> Result<Metadata> {
    fs::symlink_metadata(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the problem with a folder, or `None`. With `above`, others may write into it if it is sticky, like /tmp,
/// because they cannot replace the daemon's entries there.
fn fault(found: &Metadata, me: u32, above: bool) -> Option<String> {
    let mode = found.permissions().mode();
    if !found.is_dir() && (!above || !found.is_symlink()) {
        return Some("not a folder".into());
    }
    if found.uid() != me && found.uid() != 0 {
        return Some(format!("user {} owns it", found.uid()));
    }
    if found.is_symlink() {
        return None; // its mode has no meaning
    }
    (mode & WRITTEN_BY_OTHERS != 0 && (!above || mode & STICKY == 0))
        .then(|| format!("others can write it (mode {:04o})", mode & 0o7777))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn folders_that_others_own_or_write_are_refused() {
        let top = std::env::temp_dir().join(format!("waterfill-safety-{}", std::process::id()));
        let inner = top.join("a/b");
        make_folder(&inner).unwrap();
        for path in [&top, &top.join("a"), &inner] {
            assert_eq!(metadata(path).unwrap().permissions().mode() & 0o7777, 0o700, "{}", path.display());
        }
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        // As an older version made it.
        set(&inner, 0o755);
        make_folder(&inner).unwrap();
        assert_eq!(metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
        let why = |path: &Path| check_folder(path).unwrap_err().to_string();
        set(&inner, 0o777);
        assert!(why(&inner).contains("others can write it (mode 0777)"), "{}", why(&inner));
        set(&inner, 0o1777);
        assert!(why(&inner).contains("mode 1777"), "others could put their own pins there");
        set(&inner, 0o700);
        set(&top.join("a"), 0o770);
        assert!(why(&inner).starts_with(&format!("{}/a: ", top.display())), "{}", why(&inner));
        set(&top.join("a"), 0o1777);
        check_folder(&inner).unwrap();
        symlink("/", top.join("link")).unwrap();
        assert!(why(&top.join("link")).contains("not a folder"));
        fs::remove_file(top.join("link")).unwrap();
        symlink(top.join("a"), top.join("link")).unwrap();
        check_folder(&top.join("link/b")).unwrap();
        set(&top.join("a"), 0o777);
        assert!(why(&top.join("link/b")).contains("/a: others can write it"), "{}", why(&top.join("link/b")));
        if Uid::effective().is_root() {
            chown(&inner, Some(12345), None).unwrap();
            assert!(why(&inner).contains("user 12345 owns it"), "{}", why(&inner));
            assert!(make_folder(&inner).is_err());
        }
        fs::remove_dir_all(&top).unwrap();
    }
}

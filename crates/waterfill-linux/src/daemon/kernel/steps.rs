//! `--log-steps`: writes the records of a law's steps (`bpf/*_steps.h`) to a file, for `validation/certificates`.
//!
//! The file begins with [`MAGIC`], the length of a JSON text and that text, which names the law and the role. Each record
//! follows its length, 4 bytes in the host's order. At the end, a record of length 0 and the number of lost steps.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, RingBufferBuilder};

use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::object;
use crate::daemon::options::error::user_error;

/// First bytes of a step log.
const MAGIC: &[u8; 8] = b"WFSTEPS1";
/// Time for which the reader waits for records before it checks whether to end.
const WAIT: Duration = Duration::from_millis(100);

/// File and length limit of a step log.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) file: PathBuf,
    /// Maximum number of steps to write.
    pub(crate) limit: u64,
}

/// A step log that is being written. Dropping it completes the file.
#[derive(Debug)]
pub(crate) struct StepLog {
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

/// Output file of the writing thread, with its counts.
struct Output {
    file: BufWriter<File>,
    written: u64,
    beyond: u64,
    limit: u64,
    failed: bool,
}

impl Output {
    fn create(target: &Target, law: &LoadableLaw, role: &str) -> std::io::Result<Self> {
        let mut file = BufWriter::new(File::create(&target.file)?);
        let text = format!("{{\"law\":\"{}\",\"role\":\"{role}\"}}", law.name);
        file.write_all(MAGIC)?;
        file.write_all(&(text.len() as u32).to_ne_bytes())?;
        file.write_all(text.as_bytes())?;
        Ok(Self { file, written: 0, beyond: 0, limit: target.limit, failed: false })
    }

    fn take(&mut self, record: &[u8]) {
        if self.written >= self.limit || self.failed {
            self.beyond += 1;
            return;
        }
        let length = (record.len() as u32).to_ne_bytes();
        self.failed = self.file.write_all(&length).and_then(|()| self.file.write_all(record)).is_err();
        self.written += 1;
    }

    fn finish(&mut self, lost: u64) -> std::io::Result<()> {
        self.file.write_all(&0u32.to_ne_bytes())?;
        self.file.write_all(&(lost + self.beyond).to_ne_bytes())?;
        self.file.flush()
    }
}

impl StepLog {
    /// Starts a thread that writes the steps of a loaded object whose log is on.
    pub(crate) fn start(target: &Target, law: &LoadableLaw, role: &str, object: &Object) -> Result<Self> {
        let failed = |e: std::io::Error| user_error(format!("--log-steps {}: {e}", target.file.display()));
        let mut output = Output::create(target, law, role).map_err(failed)?;
        let ring = MapHandle::try_from(&object::map(object, object::STEPS[0])?)?;
        let lost = MapHandle::try_from(&object::map(object, object::STEPS[1])?)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (asked, path) = (Arc::clone(&stop), target.file.clone());
        let writer = thread::Builder::new().name("steps".into()).spawn(move || {
            if let Err(e) = write(&mut output, &ring, &lost, &asked, &path) {
                tracing::error!("--log-steps {}: {e:#}", path.display());
            }
        });
        Ok(Self { stop, writer: Some(writer.context("cannot start a thread")?) })
    }
}

impl Drop for StepLog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join(); // it has logged why it ended
        }
    }
}

fn write(output: &mut Output, ring: &MapHandle, lost: &MapHandle, stop: &AtomicBool, path: &Path) -> Result<()> {
    {
        let mut builder = RingBufferBuilder::new();
        builder.add(ring, |record| {
            output.take(record);
            0
        })?;
        let buffer = builder.build()?;
        while !stop.load(Ordering::Acquire) {
            let _ = buffer.poll(WAIT); // a signal may interrupt it
        }
        let _ = buffer.consume();
    }
    let lost = lost.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?.and_then(|value| value.first_chunk().copied());
    let lost = u64::from_ne_bytes(lost.unwrap_or_default());
    output.finish(lost).context("cannot be written")?;
    let missing = lost + output.beyond;
    tracing::info!("{}: {} steps; {missing} were not logged", path.display(), output.written);
    Ok(())
}

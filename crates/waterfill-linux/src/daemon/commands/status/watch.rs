//! `waterfilld status --watch` on a terminal: a live view of links, with a history of their signals, and of
//! connections.
//!
//! A thread reads the state, which may take long on a busy host; the main thread draws and reads keys. The terminal is
//! restored at the end, on a signal, and before a panic prints its message. Drawn here, line by line: the screen is a list
//! of lines, for which a library of widgets would bring fifteen more dependencies.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute, queue};
use nix::sys::signal::{SigSet, Signal};

use super::tables::{link_signal, microseconds, mode, percent, rate, tag_value};
use super::{WATCH_INTERVAL, measure_load};
use crate::daemon::commands::snapshot::Snapshot;
use crate::daemon::commands::table::{Column, fitted, fitted_without, shortened};
use crate::daemon::kernel::laws;
use crate::daemon::kernel::pins::Pins;
use crate::daemon::options::quantity::{show_count, show_rate, show_volume};
use crate::daemon::roles::csig::TagStatus;
use crate::daemon::roles::host::{FlowStatus, NONE};
use crate::daemon::roles::router::LinkStatus;

/// Maximum time for which the view waits for a key or a signal.
const KEY_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of values in the history of a link's signal.
const COURSE: usize = 16;
/// Characters for the heights of a signal history.
const LEVELS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
/// Width of a load bar in characters.
const BAR: usize = 8;

/// Shows the live view until the user types `q` or a signal arrives.
pub(super) fn run(pins: Pins) -> Result<()> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    // Before the first thread, so that only the waiting one gets them.
    signals.thread_block().context("cannot block signals")?;
    let (inputs, inbox) = channel();
    let ends = inputs.clone();
    thread::spawn(move || {
        let _ = signals.wait();
        let _ = ends.send(Input::End);
    });
    start_reader(inputs, move |inputs| read_states(&pins, inputs));
    let first = match inbox.recv() {
        Ok(Input::State(state)) => state?,
        _ => return Ok(()),
    };
    let _screen = Screen::enter()?;
    let mut view = View::new(*first);
    follow(&mut view, &inbox)
}

/// Events other than keys for which the main thread waits.
enum Input {
    State(Result<Box<Snapshot>>),
    End,
}

/// Starts the thread that reads the state. If it panics, the view ends with an error.
fn start_reader(inputs: Sender<Input>, read: impl FnOnce(&Sender<Input>) + Send + 'static) {
    thread::spawn(move || {
        if panic::catch_unwind(AssertUnwindSafe(|| read(&inputs))).is_err() {
            let _ = inputs.send(Input::State(Err(anyhow!("a thread panicked that reads the state"))));
        }
    });
}

/// Reads the state once a second. Each load is measured since the previous reading.
fn read_states(pins: &Pins, inputs: &Sender<Input>) {
    let mut before: Option<Snapshot> = None;
    loop {
        let start = Instant::now();
        let state = Snapshot::pinned(pins).map(|mut now| {
            let raw = now.clone();
            if let Some(state) = &before {
                measure_load(&mut now, state);
            }
            before = Some(raw);
            Box::new(now)
        });
        let failed = state.is_err();
        if inputs.send(Input::State(state)).is_err() || failed {
            return;
        }
        thread::sleep(WATCH_INTERVAL.saturating_sub(start.elapsed()));
    }
}

/// Draws the view and handles keys until the user quits.
fn follow(view: &mut View, inbox: &Receiver<Input>) -> Result<()> {
    let mut drawn = None;
    loop {
        let (width, height) = terminal::size().context("cannot read the terminal's size")?;
        let lines = view.lines(width.into(), height.into());
        if drawn.as_ref() != Some(&lines) {
            draw(&lines).context("cannot write to the terminal")?;
            drawn = Some(lines);
        }
        while event::poll(Duration::ZERO).context("cannot read the terminal")? {
            match event::read().context("cannot read the terminal")? {
                Event::Key(key) if key.kind != KeyEventKind::Release && view.press(key) => return Ok(()),
                Event::Resize(..) => drawn = None,
                _ => {}
            }
        }
        match inbox.recv_timeout(KEY_INTERVAL) {
            Ok(Input::State(state)) => view.update(*state?),
            Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Writes the lines over the previous ones. Not clearing the screen first avoids flicker.
fn draw(lines: &[Line]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (row, line) in lines.iter().enumerate() {
        let attribute = if line.strong { Attribute::Reverse } else { Attribute::Reset };
        queue!(
            out,
            cursor::MoveTo(0, row as u16),
            SetAttribute(attribute),
            Print(&line.text),
            SetAttribute(Attribute::Reset),
            Clear(ClearType::UntilNewLine)
        )?;
    }
    out.flush()
}

/// True while the terminal shows the alternate screen. Leaving it twice would move the cursor back over later output.
static ON_SCREEN: AtomicBool = AtomicBool::new(false);

/// Guard that keeps the terminal's alternate screen in raw mode until it is dropped.
struct Screen;

impl Screen {
    fn enter() -> Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore(); // else the message would be on the screen that goes away
            before(info);
        }));
        terminal::enable_raw_mode().context("cannot use the terminal")?;
        ON_SCREEN.store(true, Memory::SeqCst);
        let screen = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide, Clear(ClearType::All))
            .context("cannot use the terminal")?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, at most once. Errors are ignored because they could not be shown.
fn restore() {
    if !ON_SCREEN.swap(false, Memory::SeqCst) {
        return;
    }
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// A line of the view.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    text: String,
    /// True if the line is highlighted.
    strong: bool,
}

/// Sort key for the list of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Rate,
    Signal,
    Rtt,
    Mode,
    Remote,
}

impl Order {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Rate, "rate"),
        (Self::Signal, "signal"),
        (Self::Rtt, "RTT"),
        (Self::Mode, "mode"),
        (Self::Remote, "remote"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| name)
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].0
    }

    fn compare(self, a: &FlowStatus, b: &FlowStatus) -> Ordering {
        let first = |flow: &FlowStatus| {
            let name = laws::find(flow.law).ok().and_then(|law| law.source.first()).map_or("", |signal| signal.name);
            flow.signals.get(name).copied().unwrap_or(0.0)
        };
        let by = match self {
            Self::Rate => b.rate_bps.cmp(&a.rate_bps),
            Self::Signal => first(b).total_cmp(&first(a)),
            Self::Rtt => b.rtt_us.cmp(&a.rtt_us),
            Self::Mode => a.mode.cmp(&b.mode),
            Self::Remote => a.remote.cmp(&b.remote),
        };
        by.then_with(|| (&a.remote, &a.local).cmp(&(&b.remote, &b.local)))
    }
}

/// Contents of the live view, and its settings.
struct View {
    state: Snapshot,
    /// History of each link's first signal, by law and device.
    courses: BTreeMap<(&'static str, String), VecDeque<f64>>,
    order: Order,
    filter: String,
    /// True while keys edit the filter.
    writing: bool,
    paused: bool,
    /// Index of the first connection on the screen.
    top: usize,
}

impl View {
    fn new(state: Snapshot) -> Self {
        let mut view = Self {
            state: Snapshot::default(),
            courses: BTreeMap::new(),
            order: Order::Rate,
            filter: String::new(),
            writing: false,
            paused: false,
            top: 0,
        };
        view.update(state);
        view
    }

    /// Stores a new state. Signal histories continue while the view is paused.
    fn update(&mut self, state: Snapshot) {
        self.courses
            .retain(|(law, device), _| state.links.iter().any(|link| link.law == *law && link.device == *device));
        for link in &state.links {
            let name = laws::find(link.law).ok().and_then(|law| law.link.first()).map_or("", |signal| signal.name);
            let course = self.courses.entry((link.law, link.device.clone())).or_default();
            course.push_back(link.signals.get(name).copied().unwrap_or(0.0));
            if course.len() > COURSE {
                course.pop_front();
            }
        }
        if !self.paused {
            self.state = state;
        }
    }

    /// Handles a key. Returns true if the key ends the view.
    fn press(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return key.code == KeyCode::Char('c');
        }
        if self.writing {
            match key.code {
                KeyCode::Enter => self.writing = false,
                KeyCode::Esc => (self.writing, self.filter) = (false, String::new()),
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Char(c) => self.filter.push(c),
                _ => {}
            }
            self.top = 0;
            return false;
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.writing = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown => self.top += 10,
            KeyCode::PageUp => self.top = self.top.saturating_sub(10),
            KeyCode::Home => self.top = 0,
            _ => {}
        }
        false
    }

    /// Returns the lines of a screen of `width` characters and `height` lines.
    fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut add = |text: &str, strong: bool| {
            let text: String = text.chars().take(width).collect();
            lines.push(Line { text: if strong { format!("{text:<width$}") } else { text }, strong });
        };
        add(&self.title(), true);
        // Links get up to a half of the screen.
        let (mut links, most) = (self.link_lines(width), (height / 2).max(2));
        let headings = [0, links.len()];
        links.extend(self.tag_lines(width));
        for (n, line) in links.iter().take(most).enumerate() {
            add(line, headings.contains(&n));
        }
        if links.len() > most {
            add(&format!("and {} more lines of links", links.len() - most), false);
        }
        let flows = self.sorted();
        let table = flow_table(&flows, width, self.order);
        let used = 2 + links.len().min(most) + usize::from(links.len() > most);
        let space = height.saturating_sub(used + 1); // below the headings
        self.top = self.top.min(flows.len().saturating_sub(space));
        for (n, line) in table.lines().enumerate().filter(|(n, _)| *n == 0 || *n > self.top).take(space + 1) {
            add(line, n == 0);
        }
        let help = self.help();
        lines.truncate(height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), Line { text: String::new(), strong: false });
        lines.push(Line { text: format!("{:<width$}", shortened(&help, width)), strong: true });
        lines
    }

    fn title(&self) -> String {
        let state = &self.state;
        if state.roles.is_empty() {
            return "waterfilld: nothing is loaded".into();
        }
        let count = |mode: &str| state.flows.iter().filter(|flow| flow.mode == mode).count();
        let modes = ["priced", "asking", "fallen back"].map(|mode| (mode, count(mode)));
        let modes: Vec<_> = modes.iter().filter(|(_, n)| *n > 0).map(|(mode, n)| format!(", {n} {mode}")).collect();
        let paused = if self.paused { "  PAUSED" } else { "" };
        let (links, flows) = (state.links.len(), state.flows.len());
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let tags = state.csig.len();
        let tags = if tags > 0 { format!(", {} of CSIG", count(tags, "device")) } else { String::new() };
        let (links, flows) = (count(links, "link"), count(flows, "connection"));
        format!("waterfilld: {links}{tags}, {flows}{}{paused}", modes.concat())
    }

    fn help(&self) -> String {
        if self.writing {
            return format!("filter: {}_  Enter keeps it, Esc clears it", self.filter);
        }
        let filter = if self.filter.is_empty() { String::new() } else { format!(" ({})", self.filter) };
        format!("q quit  s sort ({})  / filter{filter}  p pause  arrows scroll", self.order.name())
    }

    /// Formats the links of all laws in one table.
    fn link_lines(&self, width: usize) -> Vec<String> {
        let rows: Vec<_> = self.state.links.iter().map(|link| self.link_row(link)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let columns = [
            Column::words("link", 0, 8),
            Column::left("law", 2),
            Column::right("rate", 0),
            Column::right("load", 0),
            Column::left("", 1),
            Column::right("queue", 0),
            Column::right("signal", 0),
            Column::left("its course", 0),
        ];
        fitted(&columns, &rows, Some(width)).lines().map(Into::into).collect()
    }

    fn link_row(&self, link: &LinkStatus) -> Vec<String> {
        let signal = laws::find(link.law).map_or_else(|_| NONE.into(), |law| link_signal(law, link));
        let queue = link.queue_bytes.or(link.virtual_queue_bytes);
        vec![
            link.device.clone(),
            link.law.into(),
            show_rate(link.rate_bps),
            link.load.map_or_else(|| NONE.into(), percent),
            link.load.map_or_else(String::new, bar),
            queue.map_or_else(|| NONE.into(), show_volume),
            signal,
            self.courses.get(&(link.law, link.device.clone())).map_or_else(String::new, course),
        ]
    }

    /// Formats the devices of a CSIG domain as a table.
    fn tag_lines(&self, width: usize) -> Vec<String> {
        if self.state.csig.is_empty() {
            return Vec::new();
        }
        let row = |tags: &TagStatus| {
            vec![
                tags.device.clone(),
                tags.role.to_string(),
                tags.format.to_string(),
                tag_value(tags),
                show_count(tags.pushed),
                show_count(tags.replaced),
                show_count(tags.stripped),
            ]
        };
        let columns = [
            Column::words("CSIG at", 0, 8),
            Column::left("role", 0),
            Column::left("tags", 1),
            Column::right("value", 0),
            Column::right("pushed", 0),
            Column::right("replaced", 0),
            Column::right("stripped", 0),
        ];
        let rows: Vec<_> = self.state.csig.iter().map(row).collect();
        fitted(&columns, &rows, Some(width)).lines().map(Into::into).collect()
    }

    /// Returns the connections that match the filter, sorted.
    fn sorted(&self) -> Vec<&FlowStatus> {
        let has = |text: &str| text.contains(self.filter.as_str());
        let mut flows: Vec<_> = self.state.flows.iter().collect();
        flows.retain(|flow| has(&flow.local) || has(&flow.remote) || has(&mode(flow)) || has(flow.law));
        flows.sort_by(|a, b| self.order.compare(a, b));
        flows
    }
}

fn flow_table(flows: &[&FlowStatus], width: usize, order: Order) -> String {
    let row = |flow: &&FlowStatus| {
        vec![
            flow.local.clone(),
            flow.remote.clone(),
            flow.law.into(),
            mode(flow),
            flow.shown.first().map_or_else(|| NONE.into(), |(_, text)| text.clone()),
            rate(flow),
            microseconds(flow.rtt_us),
        ]
    };
    let columns = [
        Column::words("local", 1, 14),
        Column::words("remote", 0, 14),
        Column::left("law", 2),
        Column::words("mode", 0, 11),
        Column::right("signal", 0),
        Column::right("rate", 0),
        Column::right("RTT", 0),
    ];
    // Which end is local says more than the RTT, unless that is what the rows are sorted by.
    let less = if order == Order::Rtt { "" } else { "RTT" };
    fitted_without(less, &columns, &flows.iter().map(row).collect::<Vec<_>>(), Some(width))
}

/// Formats a load as a bar, which is full at a load of 1 or more.
fn bar(load: f64) -> String {
    let eighths = (load.clamp(0.0, 1.0) * (8 * BAR) as f64).round() as usize;
    // Blocks that grow from the left: U+258F is an eighth, U+2588 is full.
    let part = char::from_u32(0x2590 - (eighths % 8) as u32).filter(|_| eighths % 8 > 0);
    let text: String = std::iter::repeat_n('\u{2588}', eighths / 8).chain(part).collect();
    format!("{text:<BAR$}")
}

/// Formats values as heights between their minimum and maximum. If the values differ by less than a thousandth, the
/// heights stay low.
fn course(values: &VecDeque<f64>) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = (most - least).max(1e-3 * most.abs()).max(f64::MIN_POSITIVE);
    let level = |value: &f64| LEVELS[(((value - least) / span * 7.0).round() as usize).min(7)];
    values.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::daemon::commands::status::tables::tests::widest;

    fn view(flows: usize) -> View {
        View::new(Snapshot { csig: Vec::new(), ..widest(laws::default(), flows) })
    }

    fn screen(view: &mut View) -> Vec<String> {
        view.lines(80, 24).into_iter().map(|line| line.text).collect()
    }

    fn press(view: &mut View, keys: &str) -> bool {
        let key = |c| match c {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            c => KeyCode::Char(c),
        };
        keys.chars().fold(false, |_, c| view.press(KeyEvent::new(key(c), KeyModifiers::NONE)))
    }

    #[test]
    fn every_screen_is_full_and_no_line_is_too_long() {
        for (flows, width, height) in [(0, 80, 24), (4, 80, 24), (200, 80, 24), (200, 40, 10), (9, 200, 50), (3, 1, 1)]
        {
            for law in laws::all() {
                let lines = View::new(widest(law, flows)).lines(width, height);
                assert_eq!(lines.len(), height, "{flows} connections");
                let long = lines.iter().find(|line| line.text.chars().count() > width);
                assert_eq!(long, None, "{flows} connections at {width}x{height}");
            }
        }
        let text = screen(&mut View::new(Snapshot::default()));
        assert!(text[0].contains("nothing is loaded") && text[23].starts_with("q quit"), "{text:?}");
    }

    #[test]
    fn keys_sort_filter_pause_scroll_and_quit() {
        let mut view = view(200);
        view.state.flows[150].rate_bps = 9_000_000_000;
        view.state.flows[7].rtt_us = 7_000_000;
        let first = |view: &mut View| screen(view)[4].clone();
        assert!(first(&mut view).contains("9 Gbit/s"), "{:?}", screen(&mut view));
        press(&mut view, "ss");
        assert!(first(&mut view).ends_with(" 7 s") && screen(&mut view)[23].contains("sort (RTT)"));
        // 67 of 200 have fallen back.
        press(&mut view, "/no rox\x08u\n");
        let shown = screen(&mut view);
        assert!(shown[4..23].iter().all(|line| line.contains("(no router)")), "{shown:?}");
        assert!(shown[23].contains("/ filter (no rou)"), "{shown:?}");
        press(&mut view, "\x1b/qqq\n");
        assert_eq!(screen(&mut view)[4], "", "nothing has these letters, and q is one of them");
        press(&mut view, "/\x1b");
        let unscrolled = screen(&mut view);
        press(&mut view, "jjj");
        let scrolled = screen(&mut view);
        assert_eq!((&scrolled[3], &scrolled[4]), (&unscrolled[3], &unscrolled[7]));
        press(&mut view, "p");
        view.update(Snapshot::default());
        assert!(screen(&mut view)[0].contains("PAUSED") && screen(&mut view)[0].contains("200 connections"));
        press(&mut view, "p");
        view.update(Snapshot::default());
        assert!(screen(&mut view)[0].contains("nothing is loaded"));
        assert!(press(&mut view, "q"));
        assert!(view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }

    #[test]
    fn devices_of_csig_are_below_the_links() {
        let lines = View::new(widest(laws::default(), 3)).lines(80, 24);
        assert!(lines[0].text.contains("1 link, 1 device of CSIG, 3 connections"), "{lines:?}");
        assert!(lines[1].strong && lines[3].strong && !lines[4].strong, "{lines:?}");
        assert!(lines[3].text.starts_with("CSIG at") && lines[4].text.contains("12.3 s   123 G"), "{lines:?}");
    }

    #[test]
    fn a_course_and_a_bar_have_the_height_of_their_values() {
        assert_eq!(course(&[1.0, 2.0, 8.0].into()), "\u{2581}\u{2582}\u{2588}");
        assert_eq!(course(&[5.0, 5.0 + 1e-9].into()), "\u{2581}\u{2581}", "noise has no height");
        assert_eq!(course(&[0.0, 0.0].into()), "\u{2581}\u{2581}");
        assert_eq!((bar(0.0), bar(2.0)), (" ".repeat(8), "\u{2588}".repeat(8)));
        assert_eq!(bar(0.5 + 1.0 / 64.0), format!("{}\u{258f}   ", "\u{2588}".repeat(4)));
        let mut view = view(0);
        for n in 0..40 {
            let mut state = widest(laws::default(), 0);
            state.links[0].signals.insert("price_s", f64::from(n));
            view.update(state);
        }
        let line = &screen(&mut view)[2];
        assert!(line.ends_with('\u{2588}') && line.contains("\u{2581}\u{2581}\u{2582}"), "{line}");
    }

    #[test]
    fn a_reader_that_panics_ends_the_view() {
        let (inputs, inbox) = channel();
        let _another = inputs.clone(); // as the thread of signals has one
        start_reader(inputs, |_| panic!("as the test wants it"));
        assert!(matches!(inbox.recv(), Ok(Input::State(Err(_)))));
    }

    /// Panics while the view is shown. The next test runs this one in a terminal.
    #[test]
    #[ignore = "takes a terminal over"]
    fn panics_on_the_screen() {
        let _screen = Screen::enter().unwrap();
        draw(&[Line { text: "a screen".into(), strong: false }]).unwrap();
        panic!("as the test wants it");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_and_its_message_stays() {
        let run = |script: &str| {
            let out = Command::new("sh").args(["-ec", script]).env_remove("TMUX").output().unwrap();
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        if run("tmux -V || true").is_empty() {
            eprintln!("skipped: needs tmux");
            return;
        }
        let name = format!("waterfill-panic-{}", std::process::id());
        let file = std::env::temp_dir().join(&name);
        let (file, test) = (file.display(), std::env::current_exe().unwrap());
        let test = test.display();
        let module = module_path!().split_once("::").unwrap().1;
        let script = format!(
            "stty -g >{file}.before; {test} --ignored --exact --nocapture {module}::panics_on_the_screen; echo code $?
             stty -g >{file}.after; cmp {file}.before {file}.after && echo as before; sleep 60"
        );
        std::fs::write(format!("{file}.sh"), script).unwrap();
        let text = run(&format!(
            "terminal() {{ tmux -u -L {name} -f /dev/null \"$@\"; }}
             trap 'terminal kill-server; rm {file}.*' EXIT
             terminal new-session -d -x 120 -y 40 'RUST_BACKTRACE=0 sh {file}.sh'
             for i in $(seq 100); do terminal capture-pane -p | grep -q 'as before' && break; sleep 0.1; done
             terminal capture-pane -p
             terminal display-message -p 'alternate screen #{{alternate_on}}, cursor #{{cursor_flag}}'"
        ));
        assert!(text.contains("as before") && text.contains("code 101") && !text.contains("a screen"), "{text}");
        assert!(text.ends_with("alternate screen 0, cursor 1\n"), "{text}");
        // Each line of the message is whole: nothing was printed over it.
        assert!(text.contains("panicked at") && text.contains("\nas the test wants it\n"), "{text}");
    }
}

//! The command line. Options are checked here as far as possible without the kernel.

use std::f64::consts::FRAC_PI_2;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::error::user_error;
use super::law::{self, Law};
use super::{host, quantity, router};

/// Run MaxNet on this Linux host: as an end host, whose TCP sets its rate from the congestion price of the path, or as a
/// router, which writes the price of its links into packets. Write rates as "1 Gbit/s", 940Mbit/s or 1gbit, times as "1 ms".
#[derive(Debug, Parser)]
#[command(name = "waterfilld", version, arg_required_else_help = true, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Register MaxNet as a TCP congestion control, with its TCP option
    Host(Box<HostCommand>),
    /// Attach the router program to a device; it writes the link's congestion price into packets
    Router(Box<RouterCommand>),
    /// Show links and connections, whether or not a daemon runs
    Status(StatusCommand),
    /// Remove programs, links and settings from the kernel
    Unload(UnloadCommand),
    /// List the kernel features that host and router use, and the substitutes for missing ones
    Probe(ProbeCommand),
    /// List the laws and their parameters
    Laws(LawsCommand),
}

/// `--pins`, which every command but `probe` has.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PinsOption {
    /// Folder for pins, on a BPF file system [default: waterfill on the mounted one]
    #[arg(long, value_name = "DIR")]
    pub(super) pins: Option<PathBuf>,
}

/// Options of both roles.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) pins: PinsOption,
    /// Pin nothing: everything is unloaded when this process ends
    #[arg(long, conflicts_with = "pins")]
    pub(super) no_pin: bool,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(super) metrics: Option<SocketAddr>,
    /// Exit after loading; the kernel programs keep running
    #[arg(long, conflicts_with_all = ["no_pin", "metrics", "line"])]
    pub(super) once: bool,
    /// Print {"ready":true}, then one JSON line of status per line of standard input; exit when that closes
    #[arg(long)]
    pub(super) line: bool,
}

/// `waterfilld host`.
#[derive(Debug, Args)]
pub(super) struct HostCommand {
    /// Only connections of this control group (version 2) [default: all]
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    #[command(flatten)]
    law: LawChoice,
    /// Name in TCP's list of congestion controls [default: bpf_ and the law's]
    #[arg(long, value_parser = law_name)]
    name: Option<String>,
    /// Congestion control for paths without a router
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = law_name)]
    fallback: String,
    /// Only connections of this network namespace, by its cookie (SO_NETNS_COOKIE); repeatable
    #[arg(long = "netns-cookie", value_name = "N", value_parser = cookie)]
    netns_cookies: Vec<u64>,
    /// Only connections with hosts of this network, such as 10.0.0.0/8; repeatable [default: all]
    #[arg(long = "peers", value_name = "PREFIX")]
    peers: Vec<host::Network>,
    /// Let every user and network namespace select the law; without, only processes with CAP_NET_ADMIN may
    #[arg(long)]
    unrestricted: bool,
    /// Kind of the TCP option: 253 (experiments, RFC 6994), or 42 (the papers' own, for closed networks only)
    #[arg(long, value_name = "KIND", default_value = "253")]
    option_kind: KindArgument,
    /// MaxNet's loop gain, from 0.001 to below pi/2 [default: 0.66]
    #[arg(long, value_parser = alpha)]
    alpha: Option<String>,
    /// MaxNet's zero of the lead-lag compensator, times the RTT [default: 0.06]
    #[arg(long, value_parser = eta)]
    eta: Option<String>,
    /// MaxNet's T of the demand function; must be the same on all hosts and routers [default: 400 ms]
    #[arg(long, value_name = "TIME", value_parser = demand_time)]
    t: Option<String>,
    /// MaxNet's largest rate of a connection; must be the same on all hosts and routers [default: 1 Pbit/s]
    #[arg(long, value_name = "RATE", value_parser = any_rate)]
    x_max: Option<String>,
    /// MaxNet's shortest time between updates of window and rate [default: 1 us]
    #[arg(long, value_name = "TIME", value_parser = dt_min)]
    dt_min: Option<String>,
    /// MaxNet: echo the last price instead of its average over one RTT
    #[arg(long)]
    no_average: bool,
    /// MaxNet: keep xi when a smaller base RTT is seen, instead of compensating for it
    #[arg(long)]
    no_compensate: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

/// The law, and its parameters by name.
#[derive(Clone, Debug, Args)]
struct LawChoice {
    /// The law; hosts and routers of a path have the same
    #[arg(long, value_name = "LAW", default_value = "maxnet", value_parser = law::find)]
    law: &'static Law,
    /// A parameter of the law, such as alpha=0.5; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

/// How explicit and TCP flows share a device.
#[derive(Debug, Args)]
struct CohabitChoice {
    /// Drop or mark TCP packets so that explicit flows keep their fair share; needs Linux 6.6
    #[arg(long = "cohabit", id = "cohabit", value_name = "CONTROLLER", value_enum)]
    controller: Option<router::CohabitController>,
    /// Parameter of --cohabit, named as in a scenario's queue_params, such as interval=30ms; repeatable
    #[arg(long = "cohabit-set", id = "cohabit_set", value_name = "NAME=VALUE", requires = "cohabit")]
    set: Vec<String>,
    /// A queue for explicit flows and one for the rest instead of --cohabit's controller; implies --virtual-queue
    #[arg(long, requires_all = ["cohabit", "shape"])]
    separate: bool,
}

/// `waterfilld router`.
#[derive(Debug, Args)]
pub(super) struct RouterCommand {
    /// Device whose outgoing packets get the price; repeatable, each with its --rate
    #[arg(long = "dev", value_name = "DEVICE", required = true, value_parser = device)]
    devices: Vec<String>,
    /// Rate of the link behind the device
    #[arg(long = "rate", value_name = "RATE", required = true, value_parser = quantity::rate)]
    rates: Vec<u64>,
    #[command(flatten)]
    law: LawChoice,
    /// Fraction of the rate to fill, above 0 and up to 1 [default: the law's, MaxNet's is 0.9]
    #[arg(long, value_name = "FRACTION", value_parser = target)]
    target: Option<f64>,
    /// Bytes per packet on the link beyond its IP length; Ethernet's header has 14
    #[arg(long, value_name = "BYTES", default_value = "14", value_parser = clap::value_parser!(i32).range(0..=1000))]
    overhead: i32,
    /// MaxNet's price update interval [default: 1 ms]
    #[arg(long, value_name = "TIME", value_parser = dt_p)]
    dt_p: Option<String>,
    /// MaxNet's time in which a standing queue drains [default: 130 ms]
    #[arg(long, value_name = "TIME", value_parser = t_0)]
    t0: Option<String>,
    /// MaxNet's T of the demand function; must be the same on all hosts and routers [default: 400 ms]
    #[arg(long, value_name = "TIME", value_parser = demand_time)]
    t: Option<String>,
    /// MaxNet's largest rate of a connection; must be the same on all hosts and routers [default: 1 Pbit/s]
    #[arg(long, value_name = "RATE", value_parser = any_rate)]
    x_max: Option<String>,
    /// MaxNet: count granted start rates as load until they arrive
    #[arg(long)]
    promise: bool,
    /// Compute the queue from arrivals and the rate, even where the device's queue can be read
    #[arg(long)]
    virtual_queue: bool,
    /// Limit the device to the rate, for a link that is slower than its device
    #[arg(long)]
    shape: bool,
    /// Buffer of the shaper [default: 100 ms at the rate]
    #[arg(long, value_name = "BYTES", requires = "shape", value_parser = quantity::volume)]
    buffer: Option<u64>,
    #[command(flatten)]
    cohabit: CohabitChoice,
    #[command(flatten)]
    pub(super) common: Common,
}

/// `waterfilld status`.
#[derive(Debug, Args)]
pub(super) struct StatusCommand {
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(super) json: bool,
    /// Repeat every second until interrupted
    #[arg(long)]
    pub(super) watch: bool,
    #[command(flatten)]
    pub(super) pins: PinsOption,
}

/// `waterfilld unload`: everything, unless options select something.
#[derive(Debug, Args)]
pub(super) struct UnloadCommand {
    /// Only the host
    #[arg(long)]
    pub(super) host: bool,
    /// Only the router
    #[arg(long)]
    pub(super) router: bool,
    /// Only this device of the router; repeatable
    #[arg(long = "dev", value_name = "DEVICE", conflicts_with = "host", value_parser = device)]
    pub(super) devices: Vec<String>,
    /// Only this law
    #[arg(long, value_name = "LAW", value_parser = law::find)]
    pub(super) law: Option<&'static Law>,
    #[command(flatten)]
    pub(super) pins: PinsOption,
}

/// `waterfilld probe`.
#[derive(Debug, Args)]
pub(super) struct ProbeCommand {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// `waterfilld laws`.
#[derive(Debug, Args)]
pub(super) struct LawsCommand {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArgument {
    #[value(name = "253")]
    Experiment,
    #[value(name = "42")]
    Paper,
}

impl HostCommand {
    /// Returns the options of the role; `cgroup` returns the root of the control groups.
    pub(super) fn options(&self, cgroup: impl FnOnce() -> anyhow::Result<PathBuf>) -> anyhow::Result<host::Options> {
        Ok(host::Options {
            law: self.law.law,
            parameters: self.law.law.parameters(&self.values(), None)?,
            name: self.name.clone().unwrap_or_else(|| self.law.law.congestion_control()),
            cgroup: self.cgroup.clone().map_or_else(cgroup, Ok)?,
            fallback: self.fallback.clone(),
            netns_cookies: self.netns_cookies.clone(),
            peers: self.peers.clone(),
            unrestricted: self.unrestricted,
            kind: match self.option_kind {
                KindArgument::Experiment => host::Kind::Experiment,
                KindArgument::Paper => host::Kind::Paper,
            },
        })
    }

    /// The parameters given, by MaxNet's own options and by `--set`.
    fn values(&self) -> Vec<(String, String)> {
        let off = |given: bool, text: &str| given.then(|| text.to_owned());
        let options = [
            ("alpha", self.alpha.clone()),
            ("eta", self.eta.clone()),
            ("t", self.t.clone()),
            ("x_max", self.x_max.clone()),
            ("dt_min", self.dt_min.clone()),
            ("average", off(self.no_average, "false")),
            ("compensate", off(self.no_compensate, "false")),
        ];
        self.law.with(options)
    }

    /// Checks options against each other.
    fn check(&self) -> Result<(), String> {
        let law = self.law.law;
        self.law.check(&self.values())?;
        if matches!(self.option_kind, KindArgument::Paper) && !law.is_default() {
            return Err(format!("--option-kind 42: expected 253 with --law {}", law.name));
        }
        Ok(())
    }
}

impl RouterCommand {
    /// The law that the links run.
    pub(super) fn law(&self) -> &'static Law {
        self.law.law
    }

    /// The parameters of `--cohabit`.
    fn cohabit(&self) -> Result<Option<router::CohabitParams>, String> {
        let with = |controller| router::CohabitParams::with(controller, &self.cohabit.set);
        let params = self.cohabit.controller.map(with).transpose()?;
        Ok(params.map(|params| router::CohabitParams { separate: self.cohabit.separate, ..params }))
    }

    /// Returns the options of each device.
    pub(super) fn options(&self) -> anyhow::Result<Vec<router::Options>> {
        let values = self.values();
        // MaxNet's routers have no target of their own.
        let target = self.target.or(self.law().is_default().then_some(0.9));
        let one = |(device, rate_bps): (&String, &u64)| {
            Ok(router::Options {
                device: device.clone(),
                rate_bps: *rate_bps,
                target,
                overhead_bytes: self.overhead,
                parameters: self.law().parameters(&values, Some(device))?,
                // A device with two queues does not say which packets wait.
                virtual_queue: self.virtual_queue || self.cohabit.separate,
                shape: self.shape.then_some(router::Shape { buffer_bytes: self.buffer }),
                cohabit: self.cohabit().map_err(user_error)?,
            })
        };
        self.devices.iter().zip(&self.rates).map(one).collect()
    }

    /// The parameters given, by MaxNet's own options and by `--set`.
    fn values(&self) -> Vec<(String, String)> {
        let options = [
            ("dt_p", self.dt_p.clone()),
            ("t_0", self.t0.clone()),
            ("t", self.t.clone()),
            ("x_max", self.x_max.clone()),
            ("promise", self.promise.then(|| "true".to_owned())),
        ];
        self.law.with(options)
    }

    /// Checks options against each other.
    fn check(&self) -> Result<(), String> {
        if self.devices.len() != self.rates.len() {
            return Err(format!(
                "expected one --rate for each --dev, got {} --rate and {} --dev",
                self.rates.len(),
                self.devices.len()
            ));
        }
        if let Some(twice) = (1..self.devices.len()).find(|i| self.devices[..*i].contains(&self.devices[*i])) {
            return Err(format!("--dev {}: expected each device once", self.devices[twice]));
        }
        self.cohabit()?;
        if self.cohabit.separate {
            if self.common.once {
                return Err(
                    "--separate: expected none with --once, as the daemon divides the link while it runs".into()
                );
            }
            let apply = ["interval", "period", "explicit_weight"];
            let name = |text: &String| text.split('=').next().unwrap_or_default().trim().to_owned();
            if let Some(other) = self.cohabit.set.iter().map(name).find(|name| !apply.contains(&name.as_str())) {
                return Err(format!("--cohabit-set {other}: expected none with --separate, which has no controller"));
            }
        }
        let values = self.values();
        self.law.check(&values)?;
        if !self.law().is_default() {
            return Ok(());
        }
        let given = |name: &str, default: &str| {
            values.iter().rev().find(|(of, _)| of == name).map_or_else(|| default.to_owned(), |(_, text)| text.clone())
        };
        let (t0, dt_p) = (quantity::time(&given("t_0", "130 ms"))?, quantity::time(&given("dt_p", "1 ms"))?);
        if t0 <= dt_p {
            return Err(format!("--t0 {t0:?}: expected a time longer than --dt-p, {dt_p:?}"));
        }
        let (t, x_max) = (quantity::time(&given("t", "400 ms"))?, quantity::rate(&given("x_max", "1 Pbit/s"))?);
        self.rates.iter().try_for_each(|rate| check_demand(t, x_max, *rate))
    }
}

impl LawChoice {
    /// The values of MaxNet's own options that are given, then those of `--set`.
    fn with<const N: usize>(&self, options: [(&str, Option<String>); N]) -> Vec<(String, String)> {
        let given = options.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
        given.chain(self.set.iter().cloned()).collect()
    }

    /// Refuses MaxNet's own options with another law.
    fn check(&self, values: &[(String, String)]) -> Result<(), String> {
        if !self.law.is_default() && values.len() > self.set.len() {
            let names = self.law.list_names();
            return Err(format!("--law {}: expected its parameters by --set: {names}", self.law.name));
        }
        Ok(())
    }
}

/// The largest price that fits its field on the wire.
const MAX_PRICE_S: f64 = 32.0;

/// Checks that the prices T ln(x_max / x) fit the field, from one flow on a link to a thousand.
fn check_demand(t: Duration, x_max: u64, rate: u64) -> Result<(), String> {
    if x_max <= rate {
        let (x_max, rate) = (quantity::show_rate(x_max), quantity::show_rate(rate));
        return Err(format!("--x-max {x_max}: expected more than the link's --rate, {rate}"));
    }
    let highest = t.as_secs_f64() * (1000.0 * x_max as f64 / rate as f64).ln();
    if highest >= MAX_PRICE_S {
        let rate = quantity::show_rate(rate);
        return Err(format!(
            "--t {t:?}: expected prices below 32 s, but a thousand flows on --rate {rate} would have {highest:.1} s"
        ));
    }
    Ok(())
}

/// Parses the arguments of this process. Prints help, version or the error and returns the exit code in these cases.
pub(super) fn parse() -> Result<Command, ExitCode> {
    parse_from(std::env::args_os()).map_err(|error| {
        if error.use_stderr() {
            eprintln!("waterfilld: {}", one_line(&error));
            ExitCode::from(2)
        } else {
            let _ = error.print(); // to standard output, which may have closed
            ExitCode::SUCCESS
        }
    })
}

fn parse_from<I: IntoIterator<Item: Into<std::ffi::OsString> + Clone>>(arguments: I) -> Result<Command, clap::Error> {
    let command = CommandLine::try_parse_from(arguments)?.command;
    let checked = match &command {
        Command::Router(router) => router.check(),
        Command::Host(host) => host.check(),
        _ => Ok(()),
    };
    checked.map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, why))?;
    Ok(command)
}

/// Returns the first paragraph of clap's message; the others are hints and usage.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "expected a command: host, router, status, unload, probe or laws (try --help)".into();
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:9465 or [::1]:9465".into())
}

/// Names in TCP's list have up to 15 bytes (TCP_CA_NAME_MAX); BPF allows these characters.
fn law_name(text: &str) -> Result<String, String> {
    let fits = (1..16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    fits.then(|| text.into()).ok_or_else(|| "expected 1 to 15 letters, digits and underscores".into())
}

/// Names of devices have up to 15 bytes (IFNAMSIZ). Whether the device exists is checked later.
fn device(text: &str) -> Result<String, String> {
    let fits = (1..16).contains(&text.len()) && !text.contains(|c: char| c == '/' || c.is_whitespace());
    fits.then(|| text.into()).ok_or_else(|| "expected the name of a network device".into())
}

fn cookie(text: &str) -> Result<u64, String> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    parsed.filter(|n| *n != 0).ok_or_else(|| "expected a cookie as of SO_NETNS_COOKIE, a number above 0".into())
}

/// Parses a number that `fits`; the error says what was expected.
fn number(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite() && fits(*x)).ok_or_else(|| format!("expected {expected}"))
}

fn target(text: &str) -> Result<f64, String> {
    number(text, |x| (1e-6..=1.0).contains(&x), "a fraction such as 0.9, from 1e-6 to 1")
}

/// Parses `name=value`.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected a parameter and its value, such as alpha=0.5")?;
    Ok((name.trim().into(), value.trim().into()))
}

// MaxNet's parameters are checked here, and converted with those of `--set`.

fn alpha(text: &str) -> Result<String, String> {
    number(text, |x| (0.001..FRAC_PI_2).contains(&x), "a number from 0.001 to below pi/2").map(|_| text.into())
}

fn eta(text: &str) -> Result<String, String> {
    number(text, |x| (0.001..=65.535).contains(&x), "a number from 0.001 to 65.535").map(|_| text.into())
}

fn any_rate(text: &str) -> Result<String, String> {
    quantity::rate(text).map(|_| text.into())
}

/// Parses a time within bounds, in whole steps.
fn span(text: &str, min: Duration, max: Duration, step: Duration) -> Result<Duration, String> {
    let time = quantity::time(text)?;
    if time < min || time > max || time.as_nanos() % step.as_nanos() != 0 {
        return Err(format!("expected a time from {min:?} to {max:?}, in steps of {step:?}"));
    }
    Ok(time)
}

const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

fn demand_time(text: &str) -> Result<String, String> {
    span(text, MILLISECOND, Duration::from_secs(100), MILLISECOND).map(|_| text.into())
}

fn dt_min(text: &str) -> Result<String, String> {
    span(text, Duration::ZERO, Duration::from_secs(1), MICROSECOND).map(|_| text.into())
}

fn dt_p(text: &str) -> Result<String, String> {
    span(text, MICROSECOND, Duration::from_secs(1), MICROSECOND).map(|_| text.into())
}

fn t_0(text: &str) -> Result<String, String> {
    span(text, MICROSECOND, Duration::from_secs(4000), MICROSECOND).map(|_| text.into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn ask(line: &str) -> Result<Command, String> {
        // Blanks separate words, as in a shell; a comma stands for a blank inside a word.
        let words = line.split(' ').map(|word| word.replace(',', " "));
        parse_from(std::iter::once("waterfilld".into()).chain(words)).map_err(|e| one_line(&e))
    }

    fn refused(line: &str) -> String {
        ask(line).expect_err(line)
    }

    fn router(line: &str) -> Vec<router::Options> {
        match ask(line) {
            Ok(Command::Router(command)) => command.options().unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn host(line: &str) -> host::Options {
        match ask(line) {
            Ok(Command::Host(command)) => command.options(|| Ok("/cgroups".into())).unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_definition_passes_claps_checks() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_router_defaults_to_the_papers_values() {
        let [one] = &router("router --dev eth1 --rate 1,Gbit/s")[..] else { panic!("one device") };
        let wanted = router::Options {
            device: "eth1".into(),
            rate_bps: 1_000_000_000,
            target: Some(0.9),
            overhead_bytes: 14,
            parameters: maxnet_defaults(),
            virtual_queue: false,
            shape: None,
            cohabit: None,
        };
        assert_eq!(one, &wanted);
    }

    #[test]
    fn a_router_can_have_two_devices() {
        let line = "router --dev a --rate 10mbit --dev b --rate 2Gbit/s --target 1 --overhead 0 --promise --shape --buffer 250,kB";
        let [a, b] = &router(line)[..] else { panic!("two devices") };
        assert_eq!((a.device.as_str(), a.rate_bps), ("a", 10_000_000));
        assert_eq!((b.device.as_str(), b.rate_bps), ("b", 2_000_000_000));
        assert_eq!((a.target, a.overhead_bytes), (Some(1.0), 0));
        assert_eq!(a.parameters[48..52], 1_u32.to_ne_bytes(), "--promise");
        assert_eq!(b.shape, Some(router::Shape { buffer_bytes: Some(250_000) }));
    }

    #[test]
    fn cohabitation_takes_the_parameters_of_a_scenario() {
        let cohabit = |line: &str| router(line)[0].cohabit.clone().expect(line);
        let line = "router --dev a --rate 1gbit --cohabit improved";
        let defaults = cohabit(line);
        assert!(defaults.ecn && defaults.aim == 0.9 && defaults.depth == Duration::from_millis(300));
        let set = cohabit(&format!("{line} --cohabit-set aim=0.8 --cohabit-set interval=28ms --cohabit-set ecn=false"));
        assert_eq!((set.aim, set.interval, set.ecn), (0.8, Duration::from_millis(28), false));
        assert!(!set.separate);
        let separate = router(&format!("{line} --shape --separate --cohabit-set interval=28ms"));
        assert!(separate[0].separate() && separate[0].virtual_queue);
        let paper = cohabit("router --dev a --rate 1gbit --cohabit paper --cohabit-set update=packet");
        assert!(!paper.ecn && paper.threshold == 0.97 && format!("{:?}", paper.update) == "Packet");
    }

    #[test]
    fn a_host_defaults_to_the_papers_values() {
        let wanted = host::Options {
            name: "bpf_maxnet".into(),
            cgroup: "/cgroups".into(),
            fallback: "cubic".into(),
            netns_cookies: Vec::new(),
            peers: Vec::new(),
            unrestricted: false,
            kind: host::Kind::Experiment,
            law: law::default(),
            parameters: maxnet_defaults(),
        };
        assert_eq!(host("host"), wanted);
    }

    /// x_max; alpha, eta, T, dt_min, average, compensate, order; dt_p, T_0, promise.
    fn maxnet_defaults() -> Vec<u8> {
        let words = [660_u32, 60, 400, 1, 1, 1, 1, 0, 1000, 130_000, 0, 0].map(u32::to_ne_bytes).concat();
        [&1_000_000_000_000_000_u64.to_ne_bytes()[..], &words].concat()
    }

    #[test]
    fn a_router_defaults_to_the_simulators_target() {
        let law = waterfill_laws::protocols::maxnet::Params::default();
        assert_eq!(router("router --dev eth1 --rate 1gbit")[0].target, Some(law.mu));
    }

    #[test]
    fn every_host_option_has_an_effect() {
        let line = "host --cgroup /c --name bpf_other --fallback reno --netns-cookie 7 --netns-cookie 0x10 --option-kind 42 \
                    --alpha 0.5 --eta 0.1 --t 200ms --x-max 10Gbit/s --dt-min 0s --no-average --no-compensate --unrestricted --peers 10.0.0.0/8 --peers fd00::/8";
        let options = host(line);
        assert!(options.unrestricted);
        assert_eq!(options.peers, ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        assert_eq!(options.netns_cookies, [7, 16]);
        assert_eq!((options.kind, options.name.as_str()), (host::Kind::Paper, "bpf_other"));
        let words: Vec<_> = [500_u32, 100, 200, 0, 0, 0, 1, 0].map(u32::to_ne_bytes).concat();
        assert_eq!(options.parameters[..8], 10_000_000_000_u64.to_ne_bytes());
        assert_eq!(options.parameters[8..40], words);
        assert_eq!(options.cgroup, PathBuf::from("/c"));
        assert_eq!(host("host --set alpha=0.5 --set order=rate-first").parameters[8..12], 500_u32.to_ne_bytes());
    }

    #[test]
    fn an_error_is_one_line_with_the_option_and_what_was_expected() {
        for (line, what, expected) in [
            ("router --dev a --rate fast", "--rate", "expected a rate such as"),
            ("router --dev a --rate 31bit/s", "--rate", "from 32 bit/s to 1 Pbit/s"),
            ("router --dev a", "--rate", "required"),
            (
                "router --dev a --rate 1gbit --rate 2gbit",
                "--rate",
                "one --rate for each --dev, got 2 --rate and 1 --dev",
            ),
            ("router --dev a --rate 1gbit --dev a --rate 1gbit", "--dev a", "each device once"),
            ("router --dev a --rate 1gbit --target 0", "--target", "expected a fraction such as 0.9,"),
            ("router --dev a --rate 1gbit --target NaN", "--target", "expected a fraction such as 0.9,"),
            ("router --dev a --rate 1gbit --overhead 2000", "--overhead", "0..=1000"),
            ("router --dev a --rate 1gbit --dt-p 2s", "--dt-p", "from 1µs to 1s"),
            ("router --dev a --rate 1gbit --dt-p 1.5us", "--dt-p", "steps of 1µs"),
            ("router --dev a --rate 1gbit --t0 1ms", "--t0 1ms", "longer than --dt-p"),
            ("router --dev a --rate 1gbit --buffer 1MB", "--shape", "required"),
            ("router --dev a --rate 1gbit --x-max 1gbit", "--x-max 1 Gbit/s", "more than the link's --rate"),
            ("router --dev a --rate 1kbit --t 2s", "--t 2s", "prices below 32 s"),
            ("router --dev a/b --rate 1gbit", "--dev", "name of a network device"),
            ("router --dev a --rate 1gbit --metrics 9465", "--metrics", "an address and a port"),
            ("router --dev a --rate 1gbit --once --no-pin", "--once", "--no-pin"),
            ("router --dev a --rate 1gbit --cohabit some", "--cohabit", "possible values: paper, improved"),
            ("router --dev a --rate 1gbit --cohabit-set aim=1", "--cohabit", "required"),
            (
                "router --dev a --rate 1gbit --cohabit paper --cohabit-set aim=1",
                "--cohabit-set aim=1",
                "expected interval,",
            ),
            ("router --dev a --rate 1gbit --cohabit improved --cohabit-set aim=2", "aim=2", "from 0.001 to 1"),
            ("router --dev a --rate 1gbit --cohabit improved --cohabit-set depth=2us", "depth=2us", "from 1ms to 10s"),
            ("router --dev a --rate 1gbit --cohabit improved --cohabit-set ecn", "--cohabit-set ecn", "true or false"),
            ("router --dev a --rate 1gbit --cohabit improved --separate", "--shape", "required"),
            ("router --dev a --rate 1gbit --shape --separate", "--cohabit", "required"),
            ("router --dev a --rate 1gbit --shape --cohabit improved --separate --once", "--separate", "--once"),
            (
                "router --dev a --rate 1gbit --shape --cohabit improved --separate --cohabit-set aim=1",
                "--cohabit-set aim",
                "no controller",
            ),
            ("host --alpha 1.5708", "--alpha", "pi/2"),
            ("host --alpha 0", "--alpha", "from 0.001"),
            ("host --eta 0", "--eta", "from 0.001"),
            ("host --option-kind 254", "--option-kind", "253"),
            ("host --law tcp", "--law", "expected one of maxnet"),
            ("host --set alpha", "--set", "a parameter and its value"),
            ("host --peers 10.0.0.1/8", "--peers", "expected a network such as"),
            ("host --netns-cookie 0", "--netns-cookie", "SO_NETNS_COOKIE"),
            ("host --name a_name_of_17_long", "--name", "1 to 15"),
            ("host --pins /x --no-pin", "--pins", "--no-pin"),
            ("unload --host --dev a", "--host", "--dev"),
            ("statsu", "statsu", "unrecognized"),
        ] {
            let said = refused(line);
            assert!(said.contains(what) && said.contains(expected) && !said.contains('\n'), "{line}: {said}");
        }
        assert!(refused("").contains("expected a command") || refused("").contains("unrecognized"));
    }

    #[test]
    fn the_bounds_of_each_range_are_accepted() {
        for line in [
            "router --dev a --rate 32bit/s --t 1ms --target 1e-6",
            "router --dev a --rate 999Tbit/s --dt-p 1us --t0 2us",
            "host --alpha 0.001 --eta 65.535 --t 100s --dt-min 1s --x-max 32bit/s",
            "host --alpha 1.5707 --name a_name_of_15___",
            "status --json --watch",
            "unload",
            "probe --json",
            "laws --json",
        ] {
            assert!(ask(line).is_ok(), "{line}: {:?}", ask(line));
        }
    }
}

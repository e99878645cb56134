//! Tests of the configuration file.

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::daemon::commands::cli::tests::{csig, host, router};
use crate::daemon::roles::host::HostSetup;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("f.toml"), text)
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text)
}

fn page(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).unwrap()
}

#[test]
fn the_packaged_file_and_the_pages_example_are_valid() {
    let packaged = page("packaging/waterfilld.toml");
    let config = parse(&packaged).unwrap();
    assert!(
        config.hosts.is_empty() && config.routers.is_empty() && config.csig.is_empty(),
        "nothing is loaded before somebody writes it"
    );
    // What is commented out is valid as well, once it is not.
    let open: String = packaged
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned() + "\n")
        .collect();
    let config = parse(&open).unwrap();
    assert_eq!((config.hosts.len(), config.routers.len(), config.metrics.is_some()), (1, 1, true), "{open}");
    assert_eq!(config.csig.len(), 1, "{open}");

    let page = page("docs/reference/daemon-config.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = parse(example).unwrap();
    assert_eq!((config.hosts.len(), config.routers.len(), config.csig.len()), (1, 2, 1));
    let summary = config.summary();
    assert!(summary.contains("\ncsig: inside on eth1, wide tags with price\n"), "{summary}");
}

#[test]
fn a_file_gives_the_options_of_the_command_line() {
    let text = "[[router]]\ndevice = 'eth1'\nrate = '1 Gbit/s'\n\
                [[router]]\ndevice = 'b'\nrate = '2gbit'\ntarget = 1\noverhead = 0\nshape = true\nbuffer = '250 kB'\n\
                params = { promise = true, t_0 = '1 s' }\ncohabit = 'improved'\ncohabit_params = { aim = 0.8 }\nscone = true\n";
    let links = parse(text).unwrap().routers;
    let options: Vec<_> = links.iter().map(|one| LinkSetup::of(one, Names::Keys).unwrap()).collect();
    assert_eq!(options[..1], router("router --dev eth1 --rate 1gbit")[..]);
    let long = "router --dev b --rate 2gbit --target 1 --overhead 0 --shape --buffer 250kB --set promise=true --set t_0=1s \
                --cohabit improved --cohabit-set aim=0.8 --scone";
    assert_eq!(options[1..], router(long)[..]);

    let text = "[[csig]]\ndevice = 't2'\nrole = 'inside'\n\
                [[csig]]\ndevice = 'ta'\nrole = 'edge'\nformat = 'compact'\nsignal = 'price'\nfrom = '1 Mbit/s'\n\
                to = '100 Mbit/s'\ntpid_compact = 0x88b7\ntpid_wide = '0x88b8'\nlocator = 63\nt = '200 ms'\nx_max = '1 Tbit/s'\n";
    let options: Vec<_> = parse(text).unwrap().csig.iter().map(|one| TagSetup::of(one, Names::Keys).unwrap()).collect();
    assert_eq!(options[..1], csig("csig --inside t2")[..]);
    let long = "csig --edge ta --format compact --from 1mbit --to 100mbit --tpid-compact 0x88b7 --tpid-wide 0x88b8 \
                --locator 63 --t 200ms --x-max 1tbit";
    assert_eq!(options[1..], csig(long)[..]);

    let text = "[host]\nlaw = 'maxnet'\nparams = { alpha = 0.5, average = false }\nname = 'other'\ncgroup = '/c'\n\
                fallback = 'reno'\nnetns_cookies = [7, '0x10']\npeers = ['10.0.0.0/8', 'fd00::/8']\nunrestricted = true\n\
                option_kind = 42\nbase_rtt_window = 'unlimited'\nqueue_margin = '0.5 ms'\n";
    let hosts = parse(text).unwrap().hosts;
    let options = HostSetup::of(&hosts[0], Names::Keys, || panic!("a cgroup is given")).unwrap();
    let long = "host --set alpha=0.5 --set average=false --name other --cgroup /c --fallback reno --netns-cookie 7 --netns-cookie 16 \
                --peers 10.0.0.0/8 --peers fd00::/8 --unrestricted --option-kind 42 --base-rtt-window unlimited \
                --queue-margin 500us";
    assert_eq!(options, host(long));
}

#[test]
fn an_error_is_one_sentence_with_file_line_key_problem_and_what_to_write() {
    let table = "[[router]]\ndevice = 'a'\nrate = '1gbit'\n";
    for (text, said) in [
        ("[[router]]\ndevice='a'\nrate='fast'\n", "f.toml:3: router.rate 'fast': must be a rate such as"),
        ("[[router]]\ndevice='a'\nratee='1gbit'\n", "f.toml:3: router.ratee: unknown key, did you mean \"rate\"?"),
        ("[[router]]\ndevice='a'\n", "f.toml:1: router: `rate` is missing; add rate = \"940 Mbit/s\""),
        ("[routers]\n", "f.toml:1: routers: unknown key, did you mean \"router\"?"),
        ("[log]\nzzz = 1\n", "f.toml:2: log.zzz: unknown key; known: level, format, burst, interval"),
        ("[log]\nlevel = 'infos'\n", "f.toml:2: log.level \"infos\": unknown value, did you mean \"info\"?"),
        ("[log]\nburst = 0\n", "f.toml:2: log.burst 0: must be a whole number from 1"),
        ("[metrics]\nlisten = '9465'\n", "f.toml:2: metrics.listen '9465': must be an address and a port"),
        ("host = 3", "f.toml:1: host 3: must be a table or an array of tables"),
        ("[host]\nlaw = 'other'\n", "f.toml:2: host.law 'other': unknown law; known: maxnet,"),
        ("[host]\npeers = ['10.0.0.1/8']\n", "f.toml:2: host.peers '10.0.0.1/8': must be a network such as"),
        ("[host]\noption_kind = 254\n", "f.toml:2: host.option_kind 254: must be 253 or 42"),
        ("[host]\nlaw='rcp'\noption_kind = 42\n", "f.toml:3: host.option_kind 42: must be 253 with law rcp"),
        ("[[host]]\n[[host]]\n", "f.toml:2: host.law maxnet: in two [[host]] tables; keep one"),
        (
            "[[host]]\n[[host]]\nlaw='rcp'\nname='bpf_maxnet'\n",
            "f.toml:4: host.name bpf_maxnet: another law has this name",
        ),
        ("[csig]\ndevice='a'\n", "f.toml:1: csig: `role` is missing"),
        (
            "[[router]]\ndevice='a'\nrate = 1gbit\n",
            "f.toml:3: router.rate 1gbit: put the value in quotes, such as \"1gbit\"",
        ),
        ("x =\n", "f.toml:1: "),
    ] {
        let got = refused(text);
        assert!(got.starts_with(said) && !got.contains('\n'), "{text}: {got}");
    }
    for (more, said) in [
        ("shape = 3\n", "f.toml:4: router.shape 3: must be true or false"),
        ("target = 2.0\n", "f.toml:4: router.target 2.0: must be a fraction such as 0.9,"),
        ("overhead = 14.5\n", "f.toml:4: router.overhead 14.5: must be whole bytes from 0 to 1000"),
        ("rate = '2gbit'\n", "f.toml:4: router.rate: duplicate key"),
        ("[host]\nlaw='rcp'\n[host]\n", "f.toml:6: host: duplicate key"),
        ("buffer = 12\n", "f.toml:4: router.buffer: needs shape = true (device a)"),
        ("cohabit = 'improve'\n", "f.toml:4: router.cohabit \"improve\": unknown value, did you mean \"improved\"?"),
        ("cohabit_params = { aim = 1 }\n", "f.toml:4: router.cohabit_params: needs cohabit"),
        (
            "cohabit = 'paper'\n[router.cohabit_params]\naim = 1\n",
            "f.toml:6: router.cohabit_params.aim 1: unknown parameter; known: interval,",
        ),
        ("separate = true\n", "f.toml:4: router.separate: needs cohabit"),
        (
            "[router.params]\nt_0 = '1ms'\n",
            "f.toml:5: router.params.t_0: must be a time longer than dt_p, 1 ms, got 1 ms",
        ),
        ("params = { t0 = '1 s' }\n", "f.toml:4: router.params.t0: unknown parameter of maxnet, did you mean"),
        ("params = { alpha = 2 }\n", "f.toml:4: router.params.alpha: must be a value from 0.001 to 1.571"),
        (
            "params = { x_max = '1 Mbit/s' }\n",
            "f.toml:4: router.params.x_max: must be more than the link's 1 Gbit/s, got 1 Mbit/s",
        ),
        (table, "f.toml:5: router.device a: in two [[router]] tables with the law maxnet"),
        (
            "shape=true\n[[router]]\ndevice='a'\nrate='1gbit'\nlaw='rcp'\nshape=true\n",
            "f.toml:9: router.shape: in two [[router]] tables of device a",
        ),
    ] {
        let got = refused(&format!("{table}{more}"));
        assert!(got.starts_with(said) && !got.contains('\n'), "{more}: {got}");
    }
}

#[test]
fn an_error_in_a_table_of_tags_says_what_the_command_says() {
    let table = "[[csig]]\ndevice = 'a'\nrole = 'inside'\n";
    for (more, said) in [
        ("role = 'outside'\n", "f.toml:4: csig.role: duplicate key"),
        ("roles = 1\n", "f.toml:4: csig.roles: unknown key, did you mean \"role\"?"),
        ("format = 'wider'\n", "f.toml:4: csig.format \"wider\": unknown value, did you mean \"wide\"?"),
        ("format = 3\n", "f.toml:4: csig.format 3: must be one of compact, wide"),
        ("signal = 'abx'\n", "f.toml:4: csig.signal \"abx\": unknown value, did you mean \"abw\"?"),
        ("tpid_wide = 0x8100\n", "f.toml:4: csig.tpid_wide 0x8100: must be an EtherType from 0x0600"),
        ("tpid_wide = 0x88b5\n", "f.toml:4: csig.tpid_wide: must differ from tpid_compact"),
        ("locator = 0\n", "f.toml:4: csig.locator 0: must be a whole number from 1 to 63, or to 32767 in wide"),
        ("format = 'compact'\nlocator = 64\n", "f.toml:5: csig.locator 64: must be 1 to 63 in compact tags"),
        ("from = 'fast'\n", "f.toml:4: csig.from fast: must be a rate such as"),
        ("from = '2gbit'\nto = '1gbit'\n", "f.toml:4: csig.from: must be above zero and less than to"),
        ("x_max = '1 Gbit/s'\n", "f.toml:1: csig.to: must be at most x_max, 1 Gbit/s"),
        ("t = '1 h'\n", "f.toml:4: csig.t '1 h': must be a time such as"),
        (table, "f.toml:5: csig.device a: in two [[csig]] tables; keep one"),
    ] {
        let got = refused(&format!("{table}{more}"));
        assert!(got.starts_with(said) && !got.contains('\n'), "{more}: {got}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_the_users_error() {
    // The last one never ends.
    for (file, said) in [
        ("/no/such/file", "/no/such/file: cannot be read"),
        ("/proc", "/proc: not a regular file"),
        ("/dev/zero", "/dev/zero: not a regular file"),
    ] {
        let why = Config::read(Path::new(file)).unwrap_err();
        assert!(why.is::<crate::daemon::options::error::UserError>() && why.to_string().starts_with(said), "{why}");
    }
}

/// TOML values to try, each with the name of its JSON Schema type.
const VALUES: [(&str, &str); 9] = [
    ("string", "'some text'"),
    ("integer", "3"),
    ("number", "2.5"),
    ("boolean", "true"),
    ("date", "1979-05-27"),
    ("array", "[]"),
    ("array", "[[1]]"),
    ("object", "{}"),
    ("object", "{ x = 1 }"),
];

/// Returns the names of the types that a schema allows.
fn types(root: &Value, schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        out.extend(types(root, &root["$defs"][name]));
    }
    let given = &schema["type"];
    out.extend(
        given
            .as_array()
            .map_or(std::slice::from_ref(given), Vec::as_slice)
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned),
    );
    for any in ["anyOf", "oneOf", "allOf"] {
        out.extend(schema[any].as_array().into_iter().flatten().flat_map(|one| types(root, one)));
    }
    if out.iter().any(|name| name == "number") {
        out.push("integer".into());
    }
    out
}

/// Returns every key of the schema: its table, its name and its own schema. Keys of the root have an empty table name.
fn every_key(root: &Value) -> Vec<(String, String, Value)> {
    let mut out = Vec::new();
    for (table, key) in root["properties"].as_object().unwrap() {
        out.push((String::new(), table.clone(), key.clone()));
        let text = key.to_string();
        let definition =
            root["$defs"].as_object().unwrap().iter().find(|(name, _)| text.contains(&format!("/{name}\"")));
        let keys = definition.unwrap().1["properties"].as_object().unwrap();
        out.extend(keys.iter().map(|(key, schema)| (table.clone(), key.clone(), schema.clone())));
    }
    out
}

/// Returns a description of the fault if a file is not refused as `f.toml:LINE: PATH VALUE: PROBLEM`. The problem must
/// be stated without Rust terms.
fn wrong_refusal(text: &str, line: usize, path: &str) -> Option<String> {
    let Err(got) = parse(text) else { return Some(format!("accepted: {text}")) };
    let rest = got.strip_prefix(&format!("f.toml:{line}: {path} ")).and_then(|rest| rest.rsplit_once(": must "));
    let rust = [
        "struct", "Table", "Options", "sequence", "map", "enum", "variant", "wanted", "i64", "invalid", "$", "expected",
    ];
    let plain = |form: &str| !form.is_empty() && !rust.into_iter().any(|word| form.contains(word));
    let right = !got.contains('\n') && rest.is_some_and(|(_, form)| plain(form));
    (!right).then(|| format!("{text}{got}\n"))
}

#[test]
fn a_value_of_a_wrong_type_is_refused_with_its_place_and_what_to_write() {
    let root = schema::document();
    let (mut tried, mut faults) = (0, Vec::new());
    for (table, key, schema) in every_key(&root) {
        let path = if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
        let needed =
            ["device = 'a'", "rate = '1gbit'"].into_iter().filter(|line| table == "router" && !line.starts_with(&key));
        let mut head: Vec<String> = needed.map(str::to_owned).collect();
        if !table.is_empty() {
            head.insert(0, if table == "router" { "[[router]]".into() } else { format!("[{table}]") });
        }
        let line = head.len() + 1;
        let mut refuses = |rest: String, path: &str| {
            faults.extend(wrong_refusal(format!("{}\n{rest}\n", head.join("\n")).trim_start(), line, path));
            tried += 1;
        };
        let allowed = types(&root, &schema);
        let wrong = |allowed: &[String]| {
            let allowed = allowed.to_vec();
            VALUES.into_iter().filter(move |(kind, _)| !allowed.iter().any(|one| one == kind))
        };
        for (_, value) in wrong(&allowed) {
            refuses(format!("{key} = {value}"), &path);
        }
        // What is in an array, and a parameter's value.
        let items =
            schema["anyOf"].as_array().into_iter().flatten().chain([&schema]).find(|one| !one["items"].is_null());
        if let Some(items) = items {
            for (_, value) in wrong(&types(&root, &items["items"])) {
                refuses(format!("{key} = [{value}]"), &path);
            }
        }
        if !schema["additionalProperties"].is_null() {
            for (_, value) in wrong(&types(&root, &schema["additionalProperties"])) {
                refuses(format!("{key} = {{ alpha = {value} }}"), &format!("{path}.alpha"));
            }
        }
        // A header in place of a value, and an array of tables in place of a table.
        if !allowed.iter().any(|kind| kind == "object") {
            refuses(format!("[{path}]"), &path);
        }
        if !allowed.iter().any(|kind| kind == "array") {
            refuses(format!("[[{path}]]"), &path);
        }
    }
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    assert!(tried > 250, "{tried}");
}

/// Returns the keys of all tables in the schema, such as "log.level" or "device".
fn keys(schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        let prefix = match name.strip_suffix("Options") {
            Some("Host" | "Router" | "Csig") => String::new(),
            Some(other) => format!("{}.", other.to_lowercase()),
            None => continue,
        };
        out.extend(table["properties"].as_object().unwrap().keys().map(|key| format!("{prefix}{key}")));
    }
    out
}

#[test]
fn the_published_schema_and_the_reference_page_have_every_key() {
    let schema = schema::document();
    let published: Value = serde_json::from_str(&page("docs/waterfilld.schema.json")).unwrap();
    assert!(
        published == schema,
        "docs/waterfilld.schema.json is old; run: waterfilld schema > docs/waterfilld.schema.json"
    );
    let page = page("docs/reference/daemon-config.md");
    let keys = keys(&schema);
    assert!(keys.len() > 25, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("| `{key}` |")), "the page has no row for {key}");
    }
}

#[test]
fn what_run_refuses_is_refused_by_check() {
    let long = format!("/{}", "a".repeat(199));
    let cases = [
        ("[control]\npath = 'rel'", "f.toml:2: control.path rel: must be the absolute path of a file"),
        ("[control]\npath = ''", "f.toml:2: control.path : must be the absolute path of a file"),
        (&format!("[control]\npath = '{long}'"), "must be at most 107 bytes long, got 200"),
        ("[control]\npath = \"/a\\u0000\"", "must not contain a NUL character"),
        ("[pins]\ndirectory = \"/a\\u0000\"", "must not contain a NUL character"),
        (
            "[host]\nfallback = 'bpf_maxnet'",
            "f.toml:2: host.fallback bpf_maxnet: is the law's own name; choose another",
        ),
        ("[host]\nname = 'cubic'", "host.fallback cubic: is the law's own name; choose another"),
        ("[[router]]\nrate = '1 Gbit/s'\ndevice = \"a\\u001b[31m\"", "must be the name of a network device"),
    ];
    for (text, why) in cases {
        let said = refused(text);
        assert!(said.contains(why), "{said}");
    }
}

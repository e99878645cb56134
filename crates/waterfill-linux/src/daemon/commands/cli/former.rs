//! Former MaxNet options of `waterfilld host` and `router`, which this release still reads as `--set`.

use std::ffi::OsString;

/// Table of former options: command, option, law parameter, and the value if the option takes none.
const FORMER: [(&str, &str, &str, Option<&str>); 12] = [
    ("host", "--alpha", "alpha", None),
    ("host", "--eta", "eta", None),
    ("host", "--t", "t", None),
    ("host", "--x-max", "x_max", None),
    ("host", "--dt-min", "dt_min", None),
    ("host", "--no-average", "average", Some("false")),
    ("host", "--no-compensate", "compensate", Some("false")),
    ("router", "--dt-p", "dt_p", None),
    ("router", "--t0", "t_0", None),
    ("router", "--t", "t", None),
    ("router", "--x-max", "x_max", None),
    ("router", "--promise", "promise", Some("true")),
];

/// Replaces former MaxNet options with `--set`, unless the arguments name another law. Returns the new arguments, and a
/// hint for each replaced option.
///
/// With another law they stay and are refused, as in earlier releases.
pub(super) fn replace(arguments: impl IntoIterator<Item = OsString>) -> (Vec<OsString>, Vec<String>) {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if names_another_law(&arguments) {
        return (arguments, Vec::new());
    }
    let mut arguments = arguments.into_iter();
    let mut out: Vec<OsString> = arguments.by_ref().take(2).collect();
    let mut hints = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        let (option, joined) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        let former =
            FORMER.iter().find(|(command, name, ..)| out.get(1).is_some_and(|word| word == command) && *name == option);
        let Some((_, name, parameter, fixed)) = former else {
            out.push(argument);
            continue;
        };
        let value = match (fixed, joined) {
            (Some(fixed), None) => Some((*fixed).into()),
            (Some(_), Some(_)) => None, // it has no value
            (None, Some(value)) => Some(value.into()),
            (None, None) => arguments.next(),
        };
        let Some(value) = value else {
            out.push(argument);
            continue;
        };
        let mut set = OsString::from(format!("{parameter}="));
        set.push(value);
        hints.push(format!("{name} is deprecated and ends with this release; write --set {}", set.to_string_lossy()));
        out.extend(["--set".into(), set]);
    }
    (out, hints)
}

fn names_another_law(arguments: &[OsString]) -> bool {
    let joined = arguments.iter().filter_map(|word| word.to_str()?.strip_prefix("--law="));
    let separate = arguments.windows(2).filter(|pair| pair[0] == "--law").filter_map(|pair| pair[1].to_str());
    joined.chain(separate).any(|law| law != "maxnet")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(line: &str) -> (String, Vec<String>) {
        let (arguments, hints) = replace(line.split(' ').map(OsString::from));
        let words: Vec<_> = arguments.iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), hints)
    }

    #[test]
    fn every_former_option_is_a_parameter_with_a_hint() {
        for (command, name, parameter, fixed) in FORMER {
            let forms = match fixed {
                Some(_) => vec![format!("waterfilld {command} {name}")],
                None => vec![format!("waterfilld {command} {name} 1"), format!("waterfilld {command} {name}=1")],
            };
            for line in forms {
                let (now, hints) = replaced(&line);
                let set = format!("--set {parameter}={}", fixed.unwrap_or("1"));
                assert_eq!(now, format!("waterfilld {command} {set}"));
                assert_eq!(hints, [format!("{name} is deprecated and ends with this release; write {set}")]);
            }
        }
    }

    #[test]
    fn other_commands_and_options_stay() {
        for line in [
            "waterfilld csig --t 1s --x-max 1gbit",
            "waterfilld",
            "waterfilld host --name x",
            "waterfilld host --t",
            "waterfilld host --law xcp --alpha 0.5",
            "waterfilld host --alpha 0.5 --law=xcp",
        ] {
            assert_eq!(replaced(line), (line.to_owned(), Vec::new()));
        }
    }
}

//! Parses and formats quantities, such as "622 Mbit/s", "1gbit", "14.5 ms" and "250 kB".
//!
//! Rates are stored in bit/s, volumes in bytes, times as `Duration`. The spelling is that of scenarios; rates may also be
//! written as in `tc`, without "/s" and in lower case.

use std::time::Duration;

/// Minimum rate that the laws' fields can encode, in bit/s.
pub(crate) const MIN_RATE_BPS: u64 = 32;
/// Maximum rate that the laws' fields can encode, in bit/s.
pub(crate) const MAX_RATE_BPS: u64 = 1_000_000_000_000_000;

const LARGE: [(&str, i32); 6] = [("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)];
// Both micro signs: U+00B5 is on keyboards, U+03BC is the Greek letter.
const SMALL: [(&str, i32); 6] = [("", 0), ("m", -3), ("u", -6), ("\u{b5}", -6), ("\u{3bc}", -6), ("n", -9)];

/// Parses a rate from 32 bit/s to 1 Pbit/s, and returns it in bit/s.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    const FORM: &str = "must be a rate such as \"940 Mbit/s\" or \"1gbit\"";
    let (number, unit) = split(text).ok_or(FORM)?;
    let (exponent, bits) = if let Some(e) = prefix(unit, "bit/s", &LARGE).or_else(|| prefix(unit, "bit", &LARGE)) {
        (e, 1.0)
    } else if let Some(e) = prefix(unit, "B/s", &LARGE) {
        (e, 8.0)
    } else {
        // As tc prints and reads them: 1gbit, 100mbit.
        (LARGE.iter().find(|(p, _)| unit == format!("{}bit", p.to_lowercase())).ok_or(FORM)?.1, 1.0)
    };
    let value = (bits * scaled(number, exponent).ok_or(FORM)?).round();
    if value < MIN_RATE_BPS as f64 || value > MAX_RATE_BPS as f64 {
        return Err("must be from 32 bit/s to 1 Pbit/s".into());
    }
    Ok(value as u64)
}

/// Parses a time and rounds it to nanoseconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    const FORM: &str = "must be a time such as \"1 ms\"";
    let (number, unit) = split(text).ok_or(FORM)?;
    let seconds = prefix(unit, "s", &SMALL).and_then(|e| scaled(number, e)).ok_or(FORM)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| FORM.into())
}

/// Parses a volume and returns it in bytes. A number without a unit is in bytes.
pub(crate) fn volume(text: &str) -> Result<u64, String> {
    const FORM: &str = "must be a volume such as \"250 kB\"";
    let (number, unit) = split(text).ok_or(FORM)?;
    let exponent = if unit.is_empty() { Some(0) } else { prefix(unit, "B", &LARGE) };
    let value = exponent.and_then(|e| scaled(number, e)).ok_or(FORM)?;
    if value < 1.0 || value > 2f64.powi(40) || value.fract() != 0.0 {
        return Err("must be whole bytes, from 1 B to 1 TB".into());
    }
    Ok(value as u64)
}

/// Splits text into a number and its unit. Returns `None` if the text does not begin with a number. "1e9 bit/s" has an
/// exponent, "1 EB" has none.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    if text[end..].starts_with('.') {
        end += 1 + digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some((&text[..end], text[end..].trim_start()))
}

/// Returns the decimal exponent of a unit's prefix before `base`, or `None` for an unknown prefix or another base.
fn prefix(unit: &str, base: &str, prefixes: &[(&str, i32)]) -> Option<i32> {
    let before = unit.strip_suffix(base)?;
    prefixes.iter().find(|(p, _)| *p == before).map(|(_, e)| *e)
}

/// Returns number · 10^exponent, computed in decimal, or `None` if `number` is not a number. In binary, 14.5 · 1e-3 is
/// not the number nearest to 0.0145.
fn scaled(number: &str, exponent: i32) -> Option<f64> {
    let (mantissa, own) = match number.split_once(['e', 'E']) {
        Some((mantissa, own)) => (mantissa, own.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let value: f64 = format!("{mantissa}e{}", own.checked_add(exponent)?).parse().ok()?;
    value.is_finite().then_some(value)
}

/// Formats a rate with three significant digits.
pub(crate) fn show_rate(bps: u64) -> String {
    show(bps as f64, "bit/s", &LARGE)
}

/// Formats a volume with three significant digits.
pub(crate) fn show_volume(bytes: u64) -> String {
    show(bytes as f64, "B", &LARGE)
}

/// Formats a count. A count of 100,000 or more has three significant digits.
pub(crate) fn show_count(count: u64) -> String {
    if count < 100_000 { count.to_string() } else { show(count as f64, "", &LARGE) }
}

/// Formats a time with three significant digits.
pub(crate) fn show_time(seconds: f64) -> String {
    let scale = SMALL.iter().find(|(_, e)| seconds.abs() >= 0.9995 * 10f64.powi(*e));
    match scale {
        Some((p, e)) => format!("{} {p}s", digits(seconds / 10f64.powi(*e))),
        None if seconds == 0.0 => "0 s".into(),
        None => format!("{} ns", digits(seconds * 1e9)),
    }
}

/// Formats a time since 1970 as date and time of day in UTC, with milliseconds.
pub(crate) fn show_utc(seconds: f64) -> String {
    let ms = (seconds.max(0.0) * 1e3) as u64;
    let (day, ms) = (ms / 86_400_000, ms % 86_400_000);
    // The Gregorian calendar repeats after 146,097 days. A year begins on 1 March here, so that a leap day is its last.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (second, ms) = (ms / 1000, ms % 1000);
    let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

fn show(value: f64, unit: &str, prefixes: &[(&str, i32)]) -> String {
    let (p, e) = prefixes.iter().rev().find(|(_, e)| value >= 0.9995 * 10f64.powi(*e)).unwrap_or(&("", 0));
    format!("{} {p}{unit}", digits(value / 10f64.powi(*e)))
}

/// Formats a number with three significant digits, without trailing zeros of a fraction.
fn digits(value: f64) -> String {
    let places = if value.abs() >= 99.95 { 0 } else { 1 + usize::from(value.abs() < 9.995) };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_as_in_scenarios_and_tc() {
        for (text, bps) in [
            ("1 Gbit/s", 1_000_000_000),
            ("940Mbit/s", 940_000_000),
            ("1gbit", 1_000_000_000),
            ("100mbit", 100_000_000),
            ("2.5Gbit", 2_500_000_000),
            ("9600 bit/s", 9600),
            ("125 MB/s", 1_000_000_000),
            ("1e9 bit/s", 1_000_000_000),
            ("1.5e3kbit/s", 1_500_000),
            (" 32 bit/s ", 32),
            ("1 Pbit/s", MAX_RATE_BPS),
        ] {
            assert_eq!(rate(text), Ok(bps), "{text}");
        }
    }

    #[test]
    fn malformed_rates_are_refused() {
        for text in [
            "",
            "1",
            "fast",
            "1 mbit/s",
            "1 GB",
            "-1 Gbit/s",
            "NaN bit/s",
            "1e999 bit/s",
            "1e99999999999 bit/s",
            "1 Gbit/s x",
            "1..5 Gbit/s",
        ] {
            assert!(rate(text).is_err_and(|why| why.contains("must be a rate such as")), "{text}");
        }
        for text in ["0 bit/s", "31 bit/s", "1.1 Pbit/s"] {
            assert!(rate(text).is_err_and(|why| why.contains("from 32 bit/s to 1 Pbit/s")), "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, wanted) in [
            ("1 ms", Duration::from_millis(1)),
            ("1ms", Duration::from_millis(1)),
            ("14.5 ms", Duration::from_micros(14_500)),
            ("250us", Duration::from_micros(250)),
            ("250 \u{b5}s", Duration::from_micros(250)),
            ("0.13 s", Duration::from_millis(130)),
            ("7 ns", Duration::from_nanos(7)),
        ] {
            assert_eq!(time(text), Ok(wanted), "{text}");
        }
        for text in ["", "1", "1 min", "-1 s", "1 Ms", "1e300 s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn volumes() {
        assert_eq!(volume("250 kB"), Ok(250_000));
        assert_eq!(volume("1500"), Ok(1500));
        assert_eq!(volume("1.5 MB"), Ok(1_500_000));
        for text in ["", "0 B", "1.5 B", "2 TB", "1 KiB", "-5"] {
            assert!(volume(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_have_three_digits() {
        assert_eq!(show_rate(0), "0 bit/s");
        assert_eq!(show_rate(941_620_000), "942 Mbit/s");
        assert_eq!(show_rate(1_000_000_000), "1 Gbit/s");
        assert_eq!(show_rate(999_990_000), "1 Gbit/s");
        assert_eq!(show_rate(1_250), "1.25 kbit/s");
        assert_eq!(show_volume(87_600), "87.6 kB");
        assert_eq!(show_time(0.0285), "28.5 ms");
        assert_eq!(show_time(0.0), "0 s");
        assert_eq!(show_time(3.8147e-6), "3.81 us");
        assert_eq!(show_time(2.5), "2.5 s");
    }

    #[test]
    fn a_time_has_the_date_of_the_calendar() {
        for (seconds, text) in [
            (0.0, "1970-01-01 00:00:00.000"),
            (951_782_400.0, "2000-02-29 00:00:00.000"),
            (951_868_799.999_5, "2000-02-29 23:59:59.999"),
            (1_795_776_123.25, "2026-11-27 10:42:03.250"),
            (4_107_542_400.0, "2100-03-01 00:00:00.000"),
        ] {
            assert_eq!(show_utc(seconds), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,12}") {
            let _ = (rate(&text), time(&text), volume(&text));
        }

        #[test]
        fn a_formatted_rate_parses_to_itself(bps in MIN_RATE_BPS..MAX_RATE_BPS) {
            let again = rate(&show_rate(bps)).unwrap() as f64;
            proptest::prop_assert!((again / bps as f64 - 1.0).abs() <= 0.0051);
        }
    }
}

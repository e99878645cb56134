//! Numbers and parameters from bytes. What the bytes run out of is zero.

use arbitrary::Unstructured;
use waterfill_laws::params::{Unit, Value};
use waterfill_laws::registry::AnyParams;

/// Returns the next byte.
pub(crate) fn byte(u: &mut Unstructured<'_>) -> u8 {
    u.arbitrary().unwrap_or(0)
}

/// Returns a number from 0 up to `n` − 1.
pub(crate) fn below(u: &mut Unstructured<'_>, n: usize) -> usize {
    u.choose_index(n).unwrap_or(0)
}

/// Returns a real number from `min` to `max`, both above zero, each decade as likely as another; sometimes one of these.
pub(crate) fn decades(u: &mut Unstructured<'_>, min: f64, max: f64) -> f64 {
    match u.arbitrary().unwrap_or(0_u16) {
        0 => min,
        u16::MAX => max,
        n => (min.ln() + (max.ln() - min.ln()) * f64::from(n) / f64::from(u16::MAX)).exp().clamp(min, max),
    }
}

/// Returns any finite number: often one that a user might write, sometimes the largest or smallest there are.
pub(crate) fn number(u: &mut Unstructured<'_>) -> f64 {
    let n = match byte(u) {
        0 => 0.0,
        1..=63 => f64::from(u.arbitrary().unwrap_or(0_u8)),
        64..=200 => decades(u, 1e-12, 1e15),
        201..=207 => f64::MAX,
        208..=214 => f64::MIN_POSITIVE,
        215..=220 => -1.0,
        _ => f64::from_bits(u.arbitrary().unwrap_or(0)),
    };
    if n.is_finite() { n } else { 1.0 }
}

/// Sets up to eight parameters, except where the checks refuse the result.
pub(crate) fn parameters(u: &mut Unstructured<'_>, mut params: AnyParams, list: &ParamList) -> AnyParams {
    for _ in 0..byte(u) % 9 {
        if list.0.is_empty() {
            break;
        }
        let (name, unit) = list.0[below(u, list.0.len())];
        let value = match unit {
            Unit::Choice(words) => Value::Word(words[below(u, words.len())].to_string()),
            Unit::Flag => Value::Flag(byte(u) & 1 == 1),
            Unit::Count => Value::Number(number(u).abs().floor()),
            _ => Value::Number(number(u)),
        };
        let mut changed = params.clone();
        if changed.set(name, &value).is_ok() && changed.validate().is_ok() {
            params = changed;
        }
    }
    params
}

/// The parameters of a protocol with their units.
pub(crate) struct ParamList(pub(crate) Vec<(&'static str, Unit)>);

/// Returns the parameters of all protocols, in the registry's order; made once.
pub(crate) fn param_lists() -> &'static [ParamList] {
    static LISTS: std::sync::OnceLock<Vec<ParamList>> = std::sync::OnceLock::new();
    LISTS.get_or_init(|| {
        let all = waterfill_laws::registry::ProtocolId::ALL.iter();
        all.map(|id| ParamList(id.params_list().iter().map(|info| (info.name, info.unit)).collect())).collect()
    })
}

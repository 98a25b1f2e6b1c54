//! Numbers with a point.

use super::{Flags, Full, Sink, verb::Printed};

/// No double has more digits than this behind its point; the rest is zeros.
const MOST_DIGITS: usize = 1_100;

pub(super) fn print(out: &mut Sink, flags: Flags, value: f64, verb: char) -> Printed {
    let (style, default) = match verb {
        'v' => ('g', None),
        'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
        'e' | 'E' | 'f' => (verb, Some(6)),
        'F' => ('f', Some(6)),
        _ => return None,
    };
    let precision = flags.precision.or(default);
    let mut number = magnitude(value.abs(), style, precision);
    if flags.sharp && style != 'b' {
        number = keep_point(&number, style, precision);
    }
    let sign = match value.is_sign_negative() {
        true => "-",
        false if flags.plus => "+",
        false if flags.space => " ",
        false => "",
    };
    Some(signed(out, flags, sign, &number))
}

/// Zeros stand behind the sign, blanks in front of it.
fn signed(out: &mut Sink, flags: Flags, sign: &str, number: &str) -> Result<(), Full> {
    if flags.zero && !flags.minus && !sign.is_empty() {
        let width = flags.width.unwrap_or(0);
        out.write(sign.as_bytes())?;
        out.repeat(b'0', width.saturating_sub(sign.len() + number.len()))?;
        return out.write(number.as_bytes());
    }
    flags.pad(out, format!("{sign}{number}").as_bytes())
}

fn magnitude(value: f64, style: char, precision: Option<usize>) -> String {
    match style {
        'b' => {
            let (mantissa, exponent) = parts(value);
            format!("{mantissa}p{:+}", exponent - 52)
        }
        'x' => hexadecimal(value, precision),
        'X' => hexadecimal(value, precision).to_uppercase(),
        'e' => exponential(value, precision),
        'E' => exponential(value, precision).to_uppercase(),
        'f' => fixed(value, precision.unwrap_or(0)),
        'G' => general(value, precision).to_uppercase(),
        _ => general(value, precision),
    }
}

/// `d.ddde+XX`; the shortest digits that read back the same without a precision.
fn exponential(value: f64, precision: Option<usize>) -> String {
    let text = match precision {
        Some(precision) => format!("{value:.*e}", precision.min(MOST_DIGITS)),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(precision.unwrap_or(0).saturating_sub(MOST_DIGITS));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{zeros}e{sign}{:02}", exponent.unsigned_abs())
}

fn fixed(value: f64, precision: usize) -> String {
    let zeros = "0".repeat(precision.saturating_sub(MOST_DIGITS));
    format!("{value:.*}{zeros}", precision.min(MOST_DIGITS))
}

/// Whichever of the two is shorter, without zeros at the end.
fn general(value: f64, precision: Option<usize>) -> String {
    let precision = precision.map(|precision| precision.max(1));
    let shown = exponential(value, precision.map(|precision| precision.min(MOST_DIGITS) - 1));
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = if value == 0.0 { -1 } else { exponent.parse().unwrap_or(0) };
    let digits: String = mantissa.chars().filter(|&char| char != '.').collect();
    let digits = digits.trim_end_matches('0');
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent + 1;
    let threshold = match precision {
        None => 6,
        Some(precision) => {
            let precision = i32::try_from(precision).unwrap_or(i32::MAX);
            if precision > count && count >= point { count } else { precision }
        }
    };
    if exponent < -4 || exponent >= threshold {
        return exponential(value, Some(digits.len().saturating_sub(1)));
    }
    fixed(value, usize::try_from(count - point).unwrap_or(0))
}

/// `0x1.8p+01`.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    const ONE: u64 = 1 << 60;
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent -= i32::try_from(shift).unwrap_or(0) - 8;
    }
    if let Some(digits) = precision.filter(|&digits| digits < 15) {
        let dropped = 60 - 4 * u32::try_from(digits).unwrap_or(0);
        let rest = mantissa & ((1 << dropped) - 1);
        mantissa >>= dropped;
        // Half goes to the even neighbour.
        let half = 1u64 << (dropped - 1);
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        mantissa <<= dropped;
        if mantissa >= ONE << 1 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let lead = mantissa >> 60;
    let digits = format!("{:015x}", mantissa & (ONE - 1));
    let fraction = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) => format!("{digits}{}", "0".repeat(precision.saturating_sub(15)))
            .chars()
            .take(precision)
            .collect(),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{lead}{point}{fraction}p{sign}{:02}", exponent.unsigned_abs())
}

/// Mantissa with 52 bits behind the point, and exponent.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    match i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0) {
        0 => (mantissa, -1022),
        exponent => (mantissa | 1 << 52, exponent - 1023),
    }
}

/// The sharp flag: always a point, and the zeros at the end stay.
fn keep_point(number: &str, style: char, precision: Option<usize>) -> String {
    let tail_marks: &[char] = if matches!(style, 'x' | 'X') { &['p', 'P'] } else { &['e', 'E'] };
    let split = number.find(tail_marks).unwrap_or(number.len());
    let (digits, tail) = number.split_at(split);
    let wanted = match style {
        'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let mut text = digits.to_owned();
    // Digits from the first that is not zero, the prefix's letter among them.
    let mut shown =
        digits.chars().filter(|&char| char != '.').skip_while(|&char| char == '0').count();
    if !digits.contains('.') {
        shown += usize::from(digits == "0");
        text.push('.');
    }
    text.push_str(&"0".repeat(wanted.saturating_sub(shown)));
    text.push_str(tail);
    text
}

//! Choice of the vector instructions that the kernels use. All give the same bits.
//!
//! The environment variable `POLYABAYES_SIMD` takes narrower ones than the processor has, so that
//! a test can compare them: `portable`, `avx2` or `avx512`. It is read once.

use std::sync::LazyLock;

use crate::error::{Error, Result};

/// The environment variable that names the instructions.
pub const VARIABLE: &str = "POLYABAYES_SIMD";

/// Sets of instructions, each with those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// Instructions that every processor of the architecture has.
    Portable,
    /// AVX2, of x86-64.
    Avx2,
    /// AVX-512 as it is from Skylake servers and Zen 4 on.
    Avx512,
}

impl Instructions {
    /// All, from the narrowest.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The name that the environment variable takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// The widest instructions that the processor has.
fn widest() -> Instructions {
    #[cfg(target_arch = "x86_64")]
    {
        if polyabayes_macros::has_avx512!() {
            return Instructions::Avx512;
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return Instructions::Avx2;
        }
    }
    Instructions::Portable
}

/// The instructions of a name, if the processor has them.
fn named(name: &str, widest: Instructions) -> Result<Instructions> {
    let found = Instructions::ALL.into_iter().find(|found| found.name() == name);
    let unknown = || Error::Instructions { name: name.to_owned(), widest: widest.name() };
    found.filter(|found| *found <= widest).ok_or_else(unknown)
}

static CHOSEN: LazyLock<Result<Instructions>> =
    LazyLock::new(|| match std::env::var_os(VARIABLE) {
        None => Ok(widest()),
        Some(name) => named(&name.to_string_lossy(), widest()),
    });

/// Refuses what [`VARIABLE`] asks for and the processor lacks.
///
/// # Errors
/// [`Error::Instructions`].
pub fn check() -> Result<()> {
    CHOSEN.clone().map(drop)
}

/// The instructions that all kernels use.
///
/// # Panics
/// Where [`check`] has an error.
#[inline]
pub fn instructions() -> Instructions {
    match &*CHOSEN {
        Ok(chosen) => *chosen,
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_refused_where_the_processor_lacks_them() {
        assert_eq!(named("avx2", Instructions::Avx512), Ok(Instructions::Avx2));
        assert_eq!(named("portable", Instructions::Portable), Ok(Instructions::Portable));
        for (name, widest) in [("avx512", Instructions::Avx2), ("sse9", Instructions::Avx512)] {
            let message = named(name, widest).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(widest.name()), "{message}");
        }
    }
}

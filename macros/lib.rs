//! Kernels of [polyabayes](https://docs.rs/polyabayes) for several instruction sets. The crate is
//! for that one alone: what it writes asks `crate::simd` which instructions to use.

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use syn::{FnArg, ItemFn, Pat, parse_macro_input, parse_quote};

/// Features of AVX-512 that the kernels use: those of every server processor that has it, from Skylake
/// and Zen 4 on.
const AVX512: [&str; 6] = ["popcnt", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];

/// Compiles a function for AVX-512, for AVX2 and for any processor; each call takes the version that
/// `crate::simd::instructions` names. With `(avx2)`, AVX2 serves processors with AVX-512, too; with
/// `(f = g)`, the version for AVX-512 calls g, which is [`macro@avx512`], wherever the function
/// calls f.
///
/// Functions that it calls have to be inlined into it to use the same instructions.
///
/// # Panics
/// At compile time: where the function is a method, or other instructions are named.
#[proc_macro_attribute]
pub fn vectorised(widest: TokenStream, function: TokenStream) -> TokenStream {
    let widest = widest.to_string();
    let (has_avx512, replaced) = match (widest.as_str(), widest.split_once(" = ")) {
        ("", _) => (true, None),
        ("avx2", _) => (false, None),
        (_, Some((name, own))) => (true, Some((format_ident!("{name}"), format_ident!("{own}")))),
        (other, _) => panic!("the widest instructions are avx2 or left out, not {other}"),
    };
    let replaced = replaced.map(|(name, own)| quote! { use self::#own as #name; });
    let ItemFn { attrs, vis, sig, block, .. } = parse_macro_input!(function as ItemFn);
    let version = |name: &str| {
        let mut sig = sig.clone();
        sig.ident = format_ident!("{name}");
        sig
    };
    let (portable, avx2, avx512) = (version("portable"), version("avx2"), version("avx512"));
    let mut outer = sig.clone();
    let mut arguments = Vec::new();
    for (position, input) in outer.inputs.iter_mut().enumerate() {
        let FnArg::Typed(argument) = input else { panic!("methods have no versions") };
        let name = match &*argument.pat {
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => format_ident!("argument_{position}"),
        };
        argument.pat = parse_quote! { #name };
        arguments.push(name);
    }
    let widest = format_ident!("{}", if has_avx512 { "avx512" } else { "avx2" });
    let features = AVX512;
    let of_avx512 = has_avx512.then(|| {
        quote! {
            #[cfg(target_arch = "x86_64")]
            #(#[target_feature(enable = #features)])*
            #avx512 {
                #replaced
                #block
            }
        }
    });
    quote! {
        #(#attrs)*
        #vis #outer {
            #[allow(clippy::inline_always)]
            #[inline(always)]
            #portable #block
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            #avx2 #block
            #of_avx512
            match crate::simd::instructions() {
                // SAFETY: the processor has them, as `instructions` has found out.
                #[cfg(target_arch = "x86_64")]
                crate::simd::Instructions::Avx512 => unsafe { #widest(#(#arguments),*) },
                #[cfg(target_arch = "x86_64")]
                crate::simd::Instructions::Avx2 => unsafe { avx2(#(#arguments),*) },
                _ => portable(#(#arguments),*),
            }
        }
    }
    .into()
}

/// Compiles a function for AVX-512 alone, of which it may use the instructions: the one that a
/// [`macro@vectorised`] function names.
#[proc_macro_attribute]
pub fn avx512(_: TokenStream, function: TokenStream) -> TokenStream {
    let (function, features) = (parse_macro_input!(function as ItemFn), AVX512);
    quote! {
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #(#[target_feature(enable = #features)])*
        #function
    }
    .into()
}

/// Writes `gather(blocks, places)` for AVX-512, for which the standard library has no safe function: the
/// numbers at sixteen places of a slice of blocks. A block is of the type that is named and holds sixteen
/// numbers in single precision; places are counted through all blocks, and one beyond the last is the
/// last.
#[proc_macro]
pub fn gather(block: TokenStream) -> TokenStream {
    let (block, features) = (parse_macro_input!(block as syn::Ident), AVX512);
    quote! {
        #[inline]
        #(#[target_feature(enable = #features)])*
        fn gather(
            blocks: &[#block],
            places: ::std::arch::x86_64::__m512i,
        ) -> ::std::arch::x86_64::__m512 {
            use ::std::arch::x86_64::{_mm512_i32gather_ps, _mm512_min_epu32, _mm512_set1_epi32};
            const { assert!(size_of::<#block>() == size_of::<[f32; 16]>()) };
            let _: fn(&#block) -> &[f32; 16] = |#block(numbers)| numbers;
            let last = i32::try_from(16 * blocks.len()).ok().and_then(|n| n.checked_sub(1));
            let places = _mm512_min_epu32(places, _mm512_set1_epi32(last.expect("some blocks")));
            // SAFETY: the slice has numbers up to the last place, and nothing between them: a block
            // is as large as its sixteen numbers.
            unsafe { _mm512_i32gather_ps::<4>(places, blocks.as_ptr().cast()) }
        }
    }
    .into()
}

/// Writes `array(register)` for AVX-512, for which the standard library has no safe function: the sixteen
/// whole numbers of a register.
#[proc_macro]
pub fn array(_: TokenStream) -> TokenStream {
    let features = AVX512;
    quote! {
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #(#[target_feature(enable = #features)])*
        fn array(register: ::std::arch::x86_64::__m512i) -> [u32; 16] {
            // SAFETY: both are 64 bytes, of which any are valid.
            unsafe { ::std::mem::transmute(register) }
        }
    }
    .into()
}

/// Whether the processor has what [`macro@vectorised`] takes for AVX-512.
#[proc_macro]
pub fn has_avx512(_: TokenStream) -> TokenStream {
    let features = AVX512;
    quote! { true #(&& ::std::arch::is_x86_feature_detected!(#features))* }.into()
}

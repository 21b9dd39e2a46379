//! The attribute `#[workflow]`: thin sugar over `backstitch::Workflow`.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, Ident, ItemFn, LitStr, Result, ReturnType, Token, parse_macro_input,
};

/// Makes a workflow of an async function `fn name(ctx: Ctx, input: In) -> Result<Out>`.
///
/// The function's name becomes a value that is registered and started:
/// `.register(name)`, `app.start(name, "id", input)`. The workflow's name is that of the function;
/// `#[workflow(name = "…", version = "…", events("…", "…"))]` sets another name, a version other than
/// `1`, and the types of the events that it takes (default: any).
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    let expanded = syn::parse(options).and_then(|options| expand(options, &function));
    let expanded = expanded.unwrap_or_else(|error| {
        // With the function itself, so that nothing else is complained about.
        let error = error.into_compile_error();
        quote! {
            #error
            #[allow(dead_code)]
            #function
        }
    });
    expanded.into()
}

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    version: Option<LitStr>,
    events: Vec<LitStr>,
}

impl syn::parse::Parse for Options {
    fn parse(input: syn::parse::ParseStream<'_>) -> Result<Options> {
        let mut options = Options::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let text = || {
                input.parse::<Token![=]>()?;
                input.parse::<LitStr>()
            };
            match key.to_string().as_str() {
                "name" => options.name = Some(text()?),
                "version" => options.version = Some(text()?),
                "events" => {
                    let types;
                    syn::parenthesized!(types in input);
                    let types = Punctuated::<LitStr, Token![,]>::parse_terminated(&types)?;
                    options.events = types.into_iter().collect();
                }
                _ => {
                    let message = "unknown option: write `name = \"…\"`, `version = \"…\"` or \
                                   `events(\"…\")`";
                    return Err(Error::new(key.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

fn expand(options: Options, function: &ItemFn) -> Result<Tokens> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let message = "a workflow is an async function: write `async fn`";
        return Err(Error::new_spanned(signature.fn_token, message));
    }
    if !signature.generics.params.is_empty() {
        let message =
            "a workflow has no generic parameters: it is found by its name after a restart";
        return Err(Error::new_spanned(&signature.generics, message));
    }
    let shape = "a workflow takes a context and one input: `(ctx: Ctx, input: Input)`; \
                 put several values into a struct or a tuple";
    let mut types = Vec::new();
    for argument in &signature.inputs {
        match argument {
            FnArg::Typed(typed) => types.push((&typed.pat, &typed.ty)),
            FnArg::Receiver(receiver) => return Err(Error::new_spanned(receiver, shape)),
        }
    }
    let [(ctx, ctx_type), (input, input_type)] = types[..] else {
        return Err(Error::new_spanned(&signature.inputs, shape));
    };
    let ReturnType::Type(_, output) = &signature.output else {
        let message = "a workflow returns `backstitch::Result<Output>`";
        return Err(Error::new_spanned(&signature.ident, message));
    };
    let (visibility, ident, block) = (&function.vis, &signature.ident, &function.block);
    let is = |attribute: &&Attribute, names: &[&str]| {
        names.iter().any(|name| attribute.path().is_ident(name))
    };
    let attributes = || function.attrs.iter();
    let of_both = attributes().filter(|a| is(a, &["cfg"])).collect::<Vec<_>>();
    let of_type = attributes().filter(|a| is(a, &["doc", "deprecated"]));
    let of_function = attributes().filter(|a| !is(a, &["cfg", "doc", "deprecated"]));
    let name = options.name.map_or_else(|| ident.to_string(), |name| name.value());
    let version = options.version.map_or_else(|| "1".to_owned(), |version| version.value());
    let events = &options.events;
    // Errors about the types point to where these are written, and not to the attribute.
    let input_item = quote_spanned!(at(input_type)=> type Input = #input_type;);
    let output_item = quote_spanned! {at(output)=>
        type Output = <#output as ::backstitch::private::Returned>::Output;
    };
    let call = quote_spanned! {at(output)=>
        fn call(
            &self,
            ctx: #ctx_type,
            input: #input_type,
        ) -> ::backstitch::private::BoxFuture<
            ::core::result::Result<Self::Output, ::backstitch::Failure>,
        > {
            // As it was written, so that the compiler's complaints are the usual ones.
            #(#of_function)*
            async fn __backstitch_function(
                #ctx: #ctx_type,
                #input: #input_type,
            ) -> #output #block

            ::backstitch::private::boxed(async move {
                let returned = __backstitch_function(ctx, input).await;
                ::backstitch::private::Returned::into_result(returned)
            })
        }
    };
    Ok(quote! {
        #(#of_both)*
        #(#of_type)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #ident;

        #(#of_both)*
        impl ::backstitch::Workflow for #ident {
            #input_item
            #output_item

            fn name(&self) -> &str { #name }

            fn version(&self) -> &str { #version }

            fn events(&self) -> ::std::vec::Vec<::std::string::String> {
                ::std::vec![#(::std::string::String::from(#events)),*]
            }

            #call
        }
    })
}

/// Generated code that is blamed on `what`.
fn at(what: &impl Spanned) -> Span {
    Span::call_site().located_at(what.span())
}

//! Switches: enums whose variants are readings of a place where a published text leaves several, the default first.

/// Declares what a switch may be: the names that users write, the default first.
#[macro_export]
macro_rules! switch {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, the default first.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// As users write it.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The one of this name. `key` is what the switch is called in the message.
            ///
            /// # Errors
            /// If there is none of this name.
            pub fn parse(key: &str, text: &str) -> Result<$name, String> {
                let named = $name::ALL.iter().find(|one| one.name() == text);
                let names: Vec<&str> = $name::ALL.iter().map(|one| one.name()).collect();
                named.copied().ok_or_else(|| {
                    let hint = $crate::spelling::hint(text, &names);
                    format!("unknown {key} {text:?}{hint}; use {}", names.join(" or "))
                })
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::ALL[0]
            }
        }
    };
}

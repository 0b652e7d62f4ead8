//! Consistency tokens: how far the store had come, opaque to callers.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use recalld_store::ids::Position;

const VERSION: u8 = 1;

/// A state of a store. As text: base64url of version, store id, journal epoch and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The store's id.
    pub store: [u8; 16],
    /// Counts the histories of a store: a restored backup starts another.
    pub epoch: u32,
    /// Operations applied.
    pub position: Position,
}

/// The text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a consistency token of recalld")]
pub struct InvalidToken;

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 29];
        bytes[0] = VERSION;
        bytes[1..17].copy_from_slice(&self.store);
        bytes[17..21].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[21..].copy_from_slice(&self.position.0.to_be_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidToken)?;
        let bytes: [u8; 29] = bytes.try_into().map_err(|_| InvalidToken)?;
        let (head, rest) = bytes.split_first_chunk::<17>().ok_or(InvalidToken)?;
        let (epoch, rest) = rest.split_first_chunk::<4>().ok_or(InvalidToken)?;
        let position = rest.first_chunk::<8>().ok_or(InvalidToken)?;
        if head[0] != VERSION {
            return Err(InvalidToken);
        }
        let mut store = [0; 16];
        store.copy_from_slice(&head[1..]);
        Ok(Self {
            store,
            epoch: u32::from_be_bytes(*epoch),
            position: Position(u64::from_be_bytes(*position)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(store: [u8; 16], epoch: u32, position: u64) {
            let token = Token { store, epoch, position: Position(position) };
            prop_assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        }

        #[test]
        fn any_text_is_refused_or_a_token(text in "[A-Za-z0-9_-]{0,60}") {
            if let Ok(token) = text.parse::<Token>() {
                prop_assert_eq!(token.to_string(), text);
            }
        }
    }
}

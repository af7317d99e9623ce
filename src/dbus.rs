//! A minimal D-Bus client (specification 0.43) for calls that are made one after the other.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;

use crate::config::Environment;

/// Maximum size of a received message, in bytes.
const LARGEST: usize = 1024 * 1024;

/// Maximum length of a line of the authentication, in bytes.
const LONGEST_LINE: usize = 4096;

const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;

/// A connection to a bus, with one deadline for everything on it.
pub(crate) struct Bus {
    stream: UnixStream,
    serial: u32,
    end: Instant,
}

/// A method call.
pub(crate) struct Call<'a> {
    pub(crate) destination: &'a str,
    pub(crate) path: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) member: &'a str,
    /// The types of the body, as a D-Bus signature.
    pub(crate) signature: &'a str,
    pub(crate) body: Writer,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection failed or the deadline passed.
    Io(io::Error),
    /// The peer answered with the error of this name.
    Refused(String),
    /// The peer's answer is not in the expected form.
    Malformed,
}

/// The address of the bus of the user's session. `None` if there is none.
pub(crate) fn session_bus(environment: &Environment) -> Option<String> {
    let set = |name| environment.get(name).filter(|value| !value.is_empty());
    if let Some(address) = set("DBUS_SESSION_BUS_ADDRESS") {
        return Some(address.to_owned());
    }
    let socket = Path::new(set("XDG_RUNTIME_DIR")?).join("bus");
    let address = || format!("unix:path={}", socket.display());
    socket.exists().then(address)
}

/// Whether the peer did not answer in time.
pub(crate) fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Bus {
    /// Connects to the bus at `address`, a list in D-Bus notation, as the user `uid`. `limit` applies to the whole
    /// connection.
    pub(crate) fn connect(address: &str, uid: u32, limit: Duration) -> Result<Self, Failure> {
        let mut last = io::Error::new(
            io::ErrorKind::NotFound,
            "the bus has no address of a supported kind",
        );
        for one in address.split(';').filter(|one| !one.is_empty()) {
            match open(one) {
                Ok(stream) => {
                    let mut bus = Self {
                        stream,
                        serial: 0,
                        end: Instant::now() + limit,
                    };
                    bus.authenticate(uid)?;
                    let hello = Call {
                        destination: "org.freedesktop.DBus",
                        path: "/org/freedesktop/DBus",
                        interface: "org.freedesktop.DBus",
                        member: "Hello",
                        signature: "",
                        body: Writer::default(),
                    };
                    bus.call(hello)?;
                    return Ok(bus);
                }
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }

    /// Authenticates with EXTERNAL: the socket itself confirms the user id (section "Authentication Protocol").
    fn authenticate(&mut self, uid: u32) -> Result<(), Failure> {
        let id = HEXLOWER.encode(uid.to_string().as_bytes());
        self.write(format!("\0AUTH EXTERNAL {id}\r\n").as_bytes())?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.read(&mut byte)?;
            line.push(byte[0]);
            if line.len() > LONGEST_LINE {
                return Err(Failure::Malformed);
            }
        }
        if !line.starts_with(b"OK ") {
            return Err(Failure::Refused(
                "the bus rejected the authentication".to_owned(),
            ));
        }
        Ok(self.write(b"BEGIN\r\n")?)
    }

    /// Makes a call and waits for its answer. Returns the answer's body.
    pub(crate) fn call(&mut self, call: Call<'_>) -> Result<Reader, Failure> {
        self.serial += 1;
        let serial = self.serial;
        self.write(&message(call, serial))?;
        loop {
            let (kind, answers, error, body) = self.receive()?;
            match kind {
                RETURN if answers == Some(serial) => return Ok(body),
                ERROR if answers == Some(serial) => {
                    return Err(Failure::Refused(error.unwrap_or_default()));
                }
                // Signals, and answers to earlier calls.
                _ => {}
            }
        }
    }

    /// Receives the next message: its type, the serial that it replies to, the name of its error, and its body.
    fn receive(&mut self) -> Result<(u8, Option<u32>, Option<String>, Reader), Failure> {
        let mut head = [0; 16];
        self.read(&mut head)?;
        let is_big = match head[0] {
            b'l' => false,
            b'B' => true,
            _ => return Err(Failure::Malformed),
        };
        let number = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            (if is_big {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }) as usize
        };
        let (body_length, fields_length) = (number(4), number(12));
        if body_length.saturating_add(fields_length) > LARGEST {
            return Err(Failure::Malformed);
        }
        let mut fields = vec![0; fields_length.next_multiple_of(8)];
        self.read(&mut fields)?;
        fields.truncate(fields_length);
        let mut body = vec![0; body_length];
        self.read(&mut body)?;
        let mut fields = Reader {
            bytes: fields,
            at: 0,
            is_big,
        };
        let (mut answers, mut error) = (None, None);
        while fields.at < fields.bytes.len() {
            fields.align(8)?;
            let code = fields.byte()?;
            match (code, fields.signature()?.as_str()) {
                (5, "u") => answers = Some(fields.number()?),
                (4, "s") => error = Some(fields.text()?),
                (_, "s" | "o") => drop(fields.text()?),
                (_, "g") => drop(fields.signature()?),
                (_, "u") => drop(fields.number()?),
                _ => return Err(Failure::Malformed),
            }
        }
        Ok((
            head[1],
            answers,
            error,
            Reader {
                bytes: body,
                at: 0,
                is_big,
            },
        ))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write_all(bytes)
    }

    fn read(&mut self, mut bytes: &mut [u8]) -> io::Result<()> {
        // The time-out is set before each piece. Otherwise a slow peer would get the whole time for each byte.
        while !bytes.is_empty() {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        // A socket does not accept a time-out of zero.
        if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(left)
        }
    }
}

/// Opens one address of a bus: `unix:path=…` or `unix:abstract=…`.
fn open(address: &str) -> io::Result<UnixStream> {
    let unknown = || {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "the bus is not on a socket of this machine",
        )
    };
    let pairs = address.strip_prefix("unix:").ok_or_else(unknown)?;
    for (key, value) in pairs.split(',').filter_map(|pair| pair.split_once('=')) {
        let value: Vec<u8> = percent_encoding::percent_decode_str(value).collect();
        match key {
            "path" => {
                use std::os::unix::ffi::OsStrExt as _;
                return UnixStream::connect(Path::new(std::ffi::OsStr::from_bytes(&value)));
            }
            #[cfg(target_os = "linux")]
            "abstract" => {
                use std::os::linux::net::SocketAddrExt as _;
                let address = std::os::unix::net::SocketAddr::from_abstract_name(value)?;
                return UnixStream::connect_addr(&address);
            }
            _ => {}
        }
    }
    Err(unknown())
}

fn message(call: Call<'_>, serial: u32) -> Vec<u8> {
    let mut whole = Writer::default();
    whole.0.extend([b'l', CALL, 0, 1]);
    let body = call.body.0;
    whole.number(u32::try_from(body.len()).expect("our own messages are short"));
    whole.number(serial);
    whole.array(8, |fields| {
        for (code, kind, value) in [
            (1, "o", call.path),
            (2, "s", call.interface),
            (3, "s", call.member),
            (6, "s", call.destination),
            (8, "g", call.signature),
        ] {
            if value.is_empty() {
                continue;
            }
            fields.align(8);
            fields.0.push(code);
            fields.signature(kind);
            if kind == "g" {
                fields.signature(value);
            } else {
                fields.text(value);
            }
        }
    });
    whole.align(8);
    whole.0.extend(body);
    whole.0
}

/// Writes values in D-Bus format, little-endian.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    pub(crate) fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend(number.to_le_bytes());
    }

    /// Writes a string or an object path.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.0.push(0);
    }

    pub(crate) fn signature(&mut self, signature: &str) {
        self.0
            .push(u8::try_from(signature.len()).expect("our own signatures are short"));
        self.0.extend(signature.as_bytes());
        self.0.push(0);
    }

    /// Writes an array of bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(u32::try_from(bytes.len()).expect("our own messages are short"));
        self.0.extend(bytes);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.number(u32::from(flag));
    }

    /// Writes an array whose elements are aligned to `to` bytes.
    pub(crate) fn array(&mut self, to: usize, write: impl FnOnce(&mut Self)) {
        self.number(0);
        let at = self.0.len() - 4;
        self.align(to);
        let start = self.0.len();
        write(self);
        let length = u32::try_from(self.0.len() - start).expect("our own messages are short");
        self.0[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Writes a dictionary of strings.
    pub(crate) fn texts(&mut self, pairs: &[(&str, &str)]) {
        self.array(8, |array| {
            for (key, value) in pairs {
                array.align(8);
                array.text(key);
                array.text(value);
            }
        });
    }
}

/// Reads values of a message's body.
pub(crate) struct Reader {
    bytes: Vec<u8>,
    at: usize,
    is_big: bool,
}

impl Reader {
    pub(crate) fn align(&mut self, to: usize) -> Result<(), Failure> {
        self.at = self.at.next_multiple_of(to);
        if self.at > self.bytes.len() {
            Err(Failure::Malformed)
        } else {
            Ok(())
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], Failure> {
        let end = self.at.checked_add(count).ok_or(Failure::Malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or(Failure::Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Failure> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Result<u32, Failure> {
        self.align(4)?;
        let is_big = self.is_big;
        let bytes = <[u8; 4]>::try_from(self.take(4)?).map_err(|_| Failure::Malformed)?;
        Ok(if is_big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    /// Reads a string or an object path.
    pub(crate) fn text(&mut self) -> Result<String, Failure> {
        let text = self.bytes()?;
        self.byte()?;
        String::from_utf8(text).map_err(|_| Failure::Malformed)
    }

    pub(crate) fn signature(&mut self) -> Result<String, Failure> {
        let length = usize::from(self.byte()?);
        let text = self.take(length)?.to_vec();
        self.byte()?;
        String::from_utf8(text).map_err(|_| Failure::Malformed)
    }

    /// Reads an array of bytes.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Failure> {
        let length = self.number()? as usize;
        Ok(self.take(length)?.to_vec())
    }

    /// Reads an array of object paths.
    pub(crate) fn paths(&mut self) -> Result<Vec<String>, Failure> {
        let length = self.number()? as usize;
        let end = self.at + length;
        let mut paths = Vec::new();
        while self.at < end {
            paths.push(self.text()?);
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_written_as_the_specification_has_it() {
        let mut body = Writer::default();
        body.text("ab");
        body.texts(&[("k", "v")]);
        let call = Call {
            destination: "d.e",
            path: "/",
            interface: "i.f",
            member: "M",
            signature: "sa{ss}",
            body,
        };
        let bytes = message(call, 7);
        assert_eq!(&bytes[..12], b"l\x01\0\x01\x1e\0\0\0\x07\0\0\0");
        assert_eq!(&bytes[16..26], b"\x01\x01o\0\x01\0\0\0/\0");
        let body = &bytes[bytes.len() - 0x1e..];
        assert_eq!(
            body,
            b"\x02\0\0\0ab\0\0\x0e\0\0\0\0\0\0\0\x01\0\0\0k\0\0\0\x01\0\0\0v\0"
        );
    }

    #[test]
    fn what_is_too_short_or_lies_about_its_length_is_malformed() {
        for bytes in [
            &b""[..],
            b"\xff\xff\xff\xff",
            b"\x05\0\0\0ab\0",
            b"\x02\0\0\0ab",
            b"\x01\0\0\0\xff\0",
        ] {
            let mut reader = Reader {
                bytes: bytes.to_vec(),
                at: 0,
                is_big: false,
            };
            assert!(
                matches!(reader.text(), Err(Failure::Malformed)),
                "{bytes:?}"
            );
        }
        let mut reader = Reader {
            bytes: b"\0\0\0\x02ab\0".to_vec(),
            at: 0,
            is_big: true,
        };
        assert_eq!(reader.text().unwrap(), "ab");
    }
}

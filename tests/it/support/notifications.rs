//! A notification service for tests, on a separate bus: it keeps the title and the text of each notification.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Setup;
use super::keyring::Keyring;

const CALL: u8 = 1;
const RETURN: u8 = 2;

/// A service that shows notifications. It ends on drop, with its bus.
pub(crate) struct Notifications {
    bus: Keyring,
    shown: Arc<Mutex<Vec<[String; 2]>>>,
}

/// A message: its type, serial, header and body. Everything is little-endian, as the programs on this machine write it.
struct Message {
    kind: u8,
    serial: u32,
    header: Vec<u8>,
    body: Vec<u8>,
}

impl Notifications {
    /// Starts the service. `None` if the test is skipped.
    #[track_caller]
    pub(crate) fn start() -> Option<Self> {
        Self::start_as("org.freedesktop.Notifications")
    }

    /// Starts it under another name, for example as the manager of units, whose scopes it keeps: the name, and what was asked; or as the
    /// panel, whose items it keeps by their names.
    #[track_caller]
    pub(crate) fn start_as(service: &str) -> Option<Self> {
        let bus = Keyring::without_daemon()?;
        let path = bus.address.strip_prefix("unix:path=").unwrap();
        let path = path.split(',').next().unwrap();
        let mut stream = UnixStream::connect(path).unwrap();
        let uid: String = rustix::process::geteuid().as_raw().to_string();
        let uid: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
        stream
            .write_all(format!("\0AUTH EXTERNAL {uid}\r\n").as_bytes())
            .unwrap();
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).unwrap();
        }
        stream.write_all(b"BEGIN\r\n").unwrap();
        let own = |member, signature, body| order(member, signature, body);
        stream.write_all(&own("Hello", "", &[])).unwrap();
        let mut name = Vec::new();
        text(&mut name, service);
        number(&mut name, 0);
        stream.write_all(&own("RequestName", "su", &name)).unwrap();
        // The answers to both.
        while !(read(&mut stream)
            .is_some_and(|message| message.kind == RETURN && message.body == [1, 0, 0, 0]))
        {
        }
        let shown = Arc::new(Mutex::new(Vec::new()));
        let kept = shown.clone();
        std::thread::spawn(move || serve(stream, &kept));
        Some(Self { bus, shown })
    }

    /// A copy of `setup` that has this service on its desktop.
    pub(crate) fn around(&self, setup: &Setup) -> Setup {
        self.bus.around(setup)
    }

    /// The socket of the bus.
    pub(crate) fn socket(&self) -> &str {
        let path = self.bus.address.strip_prefix("unix:path=").unwrap();
        path.split(',').next().unwrap()
    }

    /// The notifications so far: title and text.
    pub(crate) fn shown(&self) -> Vec<[String; 2]> {
        self.shown.lock().clone()
    }
}

fn serve(mut stream: UnixStream, shown: &Mutex<Vec<[String; 2]>>) {
    while let Some(message) = read(&mut stream) {
        if message.kind != CALL {
            continue;
        }
        let fields = fields(&message.header);
        let of = |code: u8| {
            fields
                .iter()
                .find(|(it, _)| *it == code)
                .unwrap()
                .1
                .as_str()
        };
        if of(3) == "Notify" {
            // App name, the replaced one, icon, title, text.
            let mut at = 0;
            let _ = take_text(&message.body, &mut at);
            let _ = take_number(&message.body, &mut at);
            let _ = take_text(&message.body, &mut at);
            let title = take_text(&message.body, &mut at);
            let said = take_text(&message.body, &mut at);
            shown.lock().push([title, said]);
        }
        if of(3) == "StartTransientUnit" {
            let mut at = 0;
            let unit = take_text(&message.body, &mut at);
            let mode = take_text(&message.body, &mut at);
            let process = unit
                .trim_start_matches("mcpzip-")
                .trim_end_matches(".scope");
            let process: u32 = process.parse().unwrap();
            // An array of one process.
            let list = [4_u32.to_le_bytes(), process.to_le_bytes()].concat();
            let has_it = message.body.windows(8).any(|part| part == list);
            let asked = format!("{mode} {has_it}");
            shown.lock().push([unit, asked]);
        }
        let mut body = Vec::new();
        let signature = match of(3) {
            "RegisterStatusNotifierItem" => {
                let item = take_text(&message.body, &mut 0);
                shown.lock().push([item, String::new()]);
                ""
            }
            // A property of a panel: whether it shows items.
            "Get" => {
                body.extend([1, b'b', 0, 0]);
                number(&mut body, 1);
                "v"
            }
            _ => {
                number(&mut body, 1);
                "u"
            }
        };
        let reply = write(
            RETURN,
            &[(6, 's', of(7))],
            Some(message.serial),
            signature,
            &body,
        );
        if stream.write_all(&reply).is_err() {
            return;
        }
    }
}

/// A call of the bus.
fn order(member: &str, signature: &str, body: &[u8]) -> Vec<u8> {
    let fields = [
        (1, 'o', "/org/freedesktop/DBus"),
        (2, 's', "org.freedesktop.DBus"),
        (3, 's', member),
        (6, 's', "org.freedesktop.DBus"),
    ];
    write(CALL, &fields, None, signature, body)
}

fn write(
    kind: u8,
    texts: &[(u8, char, &str)],
    answers: Option<u32>,
    signature: &str,
    body: &[u8],
) -> Vec<u8> {
    let mut fields = Vec::new();
    for (code, letter, value) in texts {
        pad(&mut fields, 8);
        fields.extend([*code, 1, u8::try_from(*letter).unwrap(), 0]);
        text(&mut fields, value);
    }
    if let Some(serial) = answers {
        pad(&mut fields, 8);
        fields.extend([5, 1, b'u', 0]);
        number(&mut fields, serial);
    }
    if !signature.is_empty() {
        pad(&mut fields, 8);
        fields.extend([8, 1, b'g', 0, u8::try_from(signature.len()).unwrap()]);
        fields.extend(signature.as_bytes());
        fields.push(0);
    }
    let mut whole = vec![b'l', kind, 0, 1];
    number(&mut whole, u32::try_from(body.len()).unwrap());
    // All messages have one serial, as no answer is looked for.
    number(&mut whole, 1);
    number(&mut whole, u32::try_from(fields.len()).unwrap());
    whole.extend(fields);
    pad(&mut whole, 8);
    whole.extend(body);
    whole
}

/// The next message; `None` at the end.
fn read(stream: &mut UnixStream) -> Option<Message> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).ok()?;
    let mut at = 4;
    let body = take_number(&head, &mut at);
    let serial = take_number(&head, &mut at);
    let length = take_number(&head, &mut at) as usize;
    let mut header = vec![0; length.next_multiple_of(8)];
    stream.read_exact(&mut header).ok()?;
    header.truncate(length);
    let mut body = vec![0; body as usize];
    stream.read_exact(&mut body).ok()?;
    let kind = head[1];
    Some(Message {
        kind,
        serial,
        header,
        body,
    })
}

/// The texts among the fields of a header, by their codes.
fn fields(header: &[u8]) -> Vec<(u8, String)> {
    let (mut at, mut fields) = (0, Vec::new());
    while at < header.len() {
        at = at.next_multiple_of(8);
        let (code, letter) = (header[at], header[at + 2]);
        at += 4;
        match letter {
            b's' | b'o' => fields.push((code, take_text(header, &mut at))),
            b'u' => drop(take_number(header, &mut at)),
            b'g' => at += usize::from(header[at]) + 2,
            other => panic!("a field of type {other}"),
        }
    }
    fields
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn number(bytes: &mut Vec<u8>, number: u32) {
    pad(bytes, 4);
    bytes.extend(number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, u32::try_from(text.len()).unwrap());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn take_number(bytes: &[u8], at: &mut usize) -> u32 {
    *at = at.next_multiple_of(4) + 4;
    u32::from_le_bytes(bytes[*at - 4..*at].try_into().unwrap())
}

fn take_text(bytes: &[u8], at: &mut usize) -> String {
    let length = take_number(bytes, at) as usize;
    let text = String::from_utf8(bytes[*at..*at + length].to_vec()).unwrap();
    *at += length + 1;
    text
}

//! The filter of system calls (seccomp) of a sandbox. It closes access that namespaces leave open.
//!
//! A socket of the family `AF_UNIX` reaches any program that listens at a path in the sandbox, read-only or not, and
//! with the network also abstract sockets of the whole machine (D-Bus, X11). `AF_VSOCK` reaches the host of a
//! virtual machine. So a server can make internet sockets only. Connected pairs of stream sockets are permitted,
//! because they reach only the server's own processes; pairs of datagram sockets are not, because they can send to
//! any address. The kernel's keyrings, which belong to the user, and `io_uring`, which makes sockets without a
//! system call for each, are closed as well.

/// The architecture of the system calls, as the kernel calls it.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// `socket` and `socketpair`.
#[cfg(target_arch = "x86_64")]
const SOCKETS: [u32; 2] = [41, 53];
#[cfg(target_arch = "aarch64")]
const SOCKETS: [u32; 2] = [198, 199];

/// `add_key`, `request_key`, `keyctl`, `bpf`, `perf_event_open`, `userfaultfd`, `io_uring_setup`.
#[cfg(target_arch = "x86_64")]
const CLOSED: &[u32] = &[248, 249, 250, 321, 298, 323, 425];
#[cfg(target_arch = "aarch64")]
const CLOSED: &[u32] = &[217, 218, 219, 280, 241, 282, 425];

/// `AF_INET`, `AF_INET6`, `AF_NETLINK`; the last is of the sandbox's own network.
const FAMILIES: [u32; 3] = [2, 10, 16];

/// `SOCK_STREAM` and `SOCK_SEQPACKET`.
const KINDS: [u32; 2] = [1, 5];

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const NO_CALL: u32 = 0x0005_0000 + 38;
const NO_FAMILY: u32 = 0x0005_0000 + 97;

/// The filter, in the form that the kernel reads. `None` on an architecture whose numbers are not known here.
pub(super) fn filter() -> Option<Vec<u8>> {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        Some(program())
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn program() -> Vec<u8> {
    let mut program = Program::default();
    // The fields of `seccomp_data`: the number at 0, the architecture at 4, the arguments from 16 on.
    program.step(LOAD, 0, 0, 4);
    program.step(EQUAL, 1, 0, ARCHITECTURE);
    program.step(RETURN, 0, 0, NO_CALL);
    program.step(LOAD, 0, 0, 0);
    // The calls of x32, which have other numbers; no call of another architecture has so high a one.
    program.step(AT_LEAST, 0, 1, 0x4000_0000);
    program.step(RETURN, 0, 0, NO_CALL);
    for number in CLOSED {
        program.step(EQUAL, 0, 1, *number);
        program.step(RETURN, 0, 0, NO_CALL);
    }
    // A group is skipped if the call is another one; the number of its steps is known here.
    let families = u8::try_from(FAMILIES.len()).expect("a few");
    program.step(EQUAL, 0, 2 + 2 * families, SOCKETS[0]);
    program.step(LOAD, 0, 0, 16);
    program.one_of(&FAMILIES);
    let kinds = u8::try_from(KINDS.len()).expect("a few");
    program.step(EQUAL, 0, 3 + 2 * kinds, SOCKETS[1]);
    program.step(LOAD, 0, 0, 24);
    program.step(AND, 0, 0, 0xf);
    program.one_of(&KINDS);
    program.step(RETURN, 0, 0, ALLOW);
    program.0
}

#[derive(Default)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
struct Program(Vec<u8>);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Program {
    fn step(&mut self, code: u16, jump_true: u8, jump_false: u8, value: u32) {
        self.0.extend(code.to_ne_bytes());
        self.0.extend([jump_true, jump_false]);
        self.0.extend(value.to_ne_bytes());
    }

    /// Permits the call if the loaded value is one of `values`, and refuses it otherwise.
    fn one_of(&mut self, values: &[u32]) {
        for value in values {
            self.step(EQUAL, 0, 1, *value);
            self.step(RETURN, 0, 0, ALLOW);
        }
        self.step(RETURN, 0, 0, NO_FAMILY);
    }
}

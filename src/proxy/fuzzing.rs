//! Properties of argument checking that must hold for any agent and any server.

use serde_json::value::RawValue;

use crate::proxy::arguments::{Checked, Schema};

pub(crate) use crate::proxy::answers::projection::fuzzing::select;

/// The first line is arguments in JSON, the rest is the tool's schema. The arguments to send are the original ones,
/// or a repair that the schema accepts.
pub(crate) fn arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (arguments, schema) = text.split_once('\n').unwrap_or((text, ""));
    let raw = |json: &'static str| serde_json::from_str::<&RawValue>(json).expect("it is JSON");
    let Ok(arguments) = serde_json::from_str::<&RawValue>(arguments) else {
        return;
    };
    let schema = Schema::compile(serde_json::from_str(schema).ok());
    match schema.check(Some(arguments)) {
        Ok(Checked::AsSent(sent)) => {
            assert!(
                sent.get() == arguments.get()
                    || arguments.get() == "null" && sent.get() == raw("{}").get()
            );
            assert!(sent.get().starts_with('{'));
        }
        Ok(Checked::Repaired {
            arguments: repaired,
            repairs,
        }) => {
            assert!(!repairs.is_empty(), "a repair is told");
            assert!(repaired.get().starts_with('{'));
            match schema.check(Some(&repaired)) {
                Ok(Checked::AsSent(same)) => assert_eq!(same.get(), repaired.get()),
                other => panic!("repaired to {}, and then {other:?}", repaired.get()),
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= 8, "{faults:?}");
            assert!(
                faults
                    .iter()
                    .all(|fault| !fault.message.is_empty() && fault.message.len() < 4000),
                "{faults:?}"
            );
        }
    }
}

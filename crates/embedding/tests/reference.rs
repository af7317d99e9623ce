//! The model computes the vectors that its makers' own arithmetic computes, and the asset is the one that they made.

use mcpzip_embedding::Model;

/// Queries are cut to this number of pieces, as in the reference.
const LONGEST: usize = 64;

#[derive(serde::Deserialize)]
struct Reference {
    text: String,
    ids: Vec<u32>,
    vector: Vec<f32>,
}

#[test]
fn vectors_are_those_of_the_reference() {
    let model = Model::bundled().unwrap();
    let references: Vec<Reference> = include_str!("reference.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(references.len() >= 20);
    let texts: Vec<&str> = references
        .iter()
        .map(|reference| reference.text.as_str())
        .collect();
    for (reference, vector) in references.iter().zip(model.embed(&texts, LONGEST)) {
        assert_eq!(
            model.pieces(&reference.text, LONGEST),
            reference.ids,
            "{}",
            reference.text
        );
        let length = reference.vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        let cosine = reference
            .vector
            .iter()
            .zip(&vector)
            .map(|(a, b)| a * b)
            .sum::<f32>()
            / length;
        assert!(
            cosine >= 0.99,
            "the vector of {:?} has a cosine of {cosine}",
            reference.text
        );
    }
}

#[test]
fn a_text_has_the_same_vector_alone_and_among_others() {
    let model = Model::bundled().unwrap();
    let texts = [
        "create an issue",
        "",
        "send a message to the channel, then close it",
    ];
    let together = model.embed(&texts, LONGEST);
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(model.embed(&[text], LONGEST)[0], *vector, "{text}");
        assert!((vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-4);
    }
    assert!(model.embed(&[], LONGEST).is_empty());
}

#[test]
fn the_asset_is_whole() {
    let asset = include_bytes!("../model.bin");
    assert_eq!(
        format!("{:08x}", crc32fast::hash(&asset[64..])),
        mcpzip_embedding::bundled_name()
    );
    assert_eq!(
        Model::bundled().unwrap().width(),
        mcpzip_embedding::BUNDLED_WIDTH
    );
}

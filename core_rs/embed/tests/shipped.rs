//! The shipped model: rows written down from the reference implementation, vectors against plain arithmetic
//! over the file, and what must hold for every text. `PROPTEST_CASES=100000` makes it a fuzzer.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use recalld_algo::terms::han;
use recalld_embed::{Scratch, StaticModel};
use unicode_normalization::UnicodeNormalization;

const ROWS: usize = 47_127;
const DIMENSIONS: usize = 256;

static FILES: LazyLock<(Vec<u8>, String, Vec<u8>)> = LazyLock::new(|| {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sidecar/recalld_sidecar/data/static-256");
    (
        std::fs::read(folder.join("model.safetensors")).unwrap(),
        std::fs::read_to_string(folder.join("vocab.txt")).unwrap(),
        std::fs::read(folder.join("neighbours.safetensors")).unwrap(),
    )
});
static MODEL: LazyLock<StaticModel> = LazyLock::new(|| {
    StaticModel::new(
        Box::new(FILES.0.clone()),
        &FILES.1,
        Box::new(FILES.2.clone()),
    )
    .unwrap()
});

fn rows(text: &str) -> Vec<u32> {
    MODEL.rows(text, &mut Scratch::default()).to_vec()
}

fn simplified(text: &str) -> String {
    text.nfkc().map(han::simplified).collect()
}

fn is_of_a_word(c: char) -> bool {
    use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}

fn pieces(rows: &[u32]) -> impl Iterator<Item = &'static str> {
    let lines: Vec<&str> = FILES.1.lines().collect();
    rows.iter()
        .map(move |&row| lines[row as usize].split('\t').next().unwrap())
}

fn embed(text: &str) -> Option<Vec<f32>> {
    let mut out = vec![f32::NAN; DIMENSIONS];
    let found = MODEL.embed(text, &mut Scratch::default(), &mut out);
    assert!(
        found || out.iter().all(|&x| x == 0.0),
        "no vector leaves zeros"
    );
    found.then_some(out)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

#[test]
fn it_is_the_model_that_was_built() {
    assert_eq!(MODEL.name(), "static-256");
    assert_eq!(MODEL.dimensions(), DIMENSIONS);
    assert_eq!(
        MODEL.fingerprint(),
        "9d26cc9b3025e4ebb1718b2eba356691b00d752c6e0936f32e370fa5ec621f1c"
    );
}

/// Texts and the pieces that the reference implementation finds in them.
#[rustfmt::skip]
const PIECES: &[(&str, &[&str])] = &[
    ("My sister Lena moved to Porto in March 2024.", &[
        "my", "sister", "lena", "moved", "to", "porto", "in", "march", "202", "##4", ".",
    ]),
    ("unbelievably overengineered", &[
        "un", "##bel", "##ie", "##va", "##bly", "over", "##eng", "##ine", "##ered",
    ]),
    ("What's the Wi-Fi password? It's hunter2!", &[
        "what", "'", "s", "the", "wi", "-", "fi", "password", "?", "it", "'", "s", "hunter", "##2", "!",
    ]),
    ("ERR_CONN_4711 at 10.0.0.7:8443", &[
        "er", "##r", "_", "con", "##n", "_", "47", "##11", "at", "10", ".", "0", ".", "0", ".", "7", ":",
        "84", "##43",
    ]),
    ("Crème brûlée, naïve façade", &["cr", "##eme", "br", "##ule", "##e", ",", "naive", "facade"]),
    ("Cre\u{300}me bru\u{302}le\u{301}e", &["cr", "##eme", "br", "##ule", "##e"]),
    ("São Paulo ist größer als Zürich", &["sao", "paulo", "ist", "gr", "##o", "##ße", "##r", "als", "zurich"]),
    ("ＦＵＬＬ\u{3000}ｗｉｄｔｈ\u{3000}１２３", &["full", "width", "123"]),
    ("ﬁne ½ ² Ⅷ ™", &["fine", "1", "⁄", "2", "2", "viii", "t", "##m"]),
    ("我对花生过敏，记得提醒我。", &["\u{2581}我", "对", "花", "生", "过", "敏", ",", "记", "得", "提", "醒", "我", "。"]),
    ("明天上午九点在北京南站见面", &["明", "天", "上午", "九", "点", "在北京", "南", "站", "见", "面"]),
    ("請幫我訂一張去台北的高鐵票", &["请", "帮", "我", "订", "一", "张", "去", "台北", "的高", "铁", "票"]),
    ("東京都の高鉄", &["\u{2581}東京都", "の高", "鉄"]),
    ("zero\u{200b}width, so\u{ad}ft", &["zero", "##wi", "##dt", "##h", ",", "soft"]),
    ("私は来週の金曜日に東京へ引っ越します", &["\u{2581}私", "は", "来", "週", "の", "金曜", "日に", "東京", "へ", "引", "っ", "越", "します"]),
    ("コーヒーはブラックが好きです", &["コー", "ヒー", "は", "ブラック", "が好き", "です"]),
    ("ｺｰﾋｰ ｶﾞﾗｽ", &["コー", "ヒー", "ガラス"]),
    ("제 여동생은 부산에서 일해요", &["\u{2581}제", "\u{2581}여", "동", "생", "은", "\u{2581}부산", "에서", "\u{2581}일", "해", "요"]),
    ("내일 회의는 오후 세 시입니다", &["\u{2581}내", "일", "회의", "는", "\u{2581}오후", "\u{2581}세", "\u{2581}시", "입니다"]),
    ("我用 Rust 写了一个 cache，比 Python 快10倍", &[
        "\u{2581}我", "用", "rust", "写", "了一个", "cache", ",", "比", "python", "快", "10", "倍",
    ]),
    ("Meet 田中さん at Gangnam 강남역 at 7pm", &[
        "meet", "田中", "さん", "at", "gang", "##nam", "\u{2581}강", "남", "역", "at", "7", "##pm",
    ]),
    ("Привет, как дела?", &[
        "п", "##р", "##и", "##в", "##е", "##т", ",", "к", "##а", "##к", "д", "##е", "##л", "##а", "?",
    ]),
    ("ΟΔΟΣ Σίσυφος", &["ο", "##δ", "##ος", "σ", "##ι", "##σ", "##υ", "##φ", "##ος"]),
    ("مرحبا بالعالم", &["م", "##ر", "##ح", "##ب", "##ا", "ب", "##ا", "##ل", "##ع", "##ا", "##ل", "##م"]),
    ("שלום עולם", &["ש", "##ל", "##ו", "##ם", "ע", "##ו", "##ל", "##ם"]),
    ("ह\u{93f}न\u{94d}द\u{940} म\u{947}\u{902} ल\u{93f}ख\u{94b}", &[
        "ह", "\u{93f}", "न", "##द", "\u{940}", "म", "ल", "\u{93f}", "ख", "\u{94b}",
    ]),
    ("สว\u{e31}สด\u{e35}คร\u{e31}บ", &[]),
    ("İstanbul'da IŞIK", &["istanbul", "'", "da", "is", "##ik"]),
    ("I ❤\u{fe0f} pizza 🍕🍕 👩\u{200d}👩\u{200d}👧", &["i", "pizza"]),
    ("1\u{fe0f}\u{20e3} 🅰\u{fe0f} Ⓐ", &["1", "a"]),
    ("🍕🍕", &[]),
    ("   \t\n ", &[]),
    ("", &[]),
    ("\u{301}\u{323}", &[]),
    ("a\u{301}\u{323}\u{308}b z\u{336}a\u{336}l\u{336}g\u{336}o\u{336}", &["ab", "za", "##l", "##go"]),
    ("か\u{3099}き\u{3099} がぎ", &["が", "ぎ", "が", "ぎ"]),
    ("a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1a3f5c9d2e8b1", &[

    ]),
    ("𝓯𝓪𝓷𝓬𝔂 𝟙𝟚𝟛", &["fancy", "123"]),
    ("##ing # ## [CLS] [UNK]", &[
        "#", "#", "ing", "#", "#", "#", "[", "cl", "##s", "]", "[", "un", "##k", "]",
    ]),
    ("龘𠮷㐀", &[]),
    ("\u{2581}", &[]),
];

#[test]
fn rows_are_those_of_the_reference() {
    let pieces: Vec<&str> = FILES
        .1
        .lines()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    for (text, expected) in PIECES {
        let found: Vec<&str> = rows(text)
            .into_iter()
            .map(|row| pieces[row as usize])
            .collect();
        assert_eq!(&found, expected, "{text}");
    }
}

#[test]
fn words_over_a_hundred_characters_are_dropped() {
    assert_eq!(rows(&"x".repeat(100)).len(), 50);
    assert_eq!(rows(&"x".repeat(101)), [0_u32; 0]);
    let mixed = format!("before {} after", "0123456789abcdef".repeat(8));
    assert_eq!(rows(&mixed), rows("before after"));
}

/// Plain arithmetic over the file, in f64: table and scales lie at its end, in the order scales, table.
fn naive_vector(rows: &[u32]) -> Vec<f64> {
    let file = &FILES.0;
    let table = &file[file.len() - ROWS * DIMENSIONS..];
    let scales = &file[file.len() - ROWS * (DIMENSIONS + 4)..];
    let mut sum = vec![0.0; DIMENSIONS];
    for &row in rows {
        let row = row as usize;
        let scale = f32::from_le_bytes(scales[row * 4..][..4].try_into().unwrap());
        for (sum, &item) in sum.iter_mut().zip(&table[row * DIMENSIONS..]) {
            *sum += f64::from(scale) * f64::from(item.cast_signed());
        }
    }
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum.iter().map(|x| x / length).collect()
}

#[test]
fn a_question_finds_its_answer_in_another_language() {
    let memories = [
        "My daughter is allergic to peanuts.",
        "我们下个月搬到上海去住。",
        "彼はピアノを弾くのが好きです。",
        "어머니는 병원에서 간호사로 일하십니다.",
    ]
    .map(|text| embed(text).unwrap());
    for (question, answer) in [
        ("哪个孩子对花生过敏？", 0),
        ("When do we move to Shanghai?", 1),
        ("Which instrument does he like to play?", 2),
        ("Who works as a nurse in a hospital?", 3),
    ] {
        let question_vector = embed(question).unwrap();
        let best = (0..memories.len())
            .max_by(|&a, &b| {
                cosine(&question_vector, &memories[a])
                    .total_cmp(&cosine(&question_vector, &memories[b]))
            })
            .unwrap();
        assert_eq!(best, answer, "{question}");
    }
}

/// Texts of many scripts, with what is awkward in them.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9 .,!?'#_-]{0,40}",
        "(the|Rust|ERR_4711|don't|\u{df}|\u{130}|\u{3a3}|\u{3a3}\u{3b1}\u{3c2}|x{99,102}| |\u{2581}){0,8}",
        "[\u{4e00}-\u{9fff}\u{3040}-\u{30ff}\u{3002}\u{ff01}]{0,20}",
        "(我|明天|东京|です|コーヒー|ガ|か\u{3099}|안녕|하세요|\u{1112}\u{1161}\u{11ab}| ){0,10}",
        "[\u{ac00}-\u{d7a3}\u{1100}-\u{11ff} ]{0,20}",
        "[\u{400}-\u{52f}\u{370}-\u{3ff}\u{590}-\u{6ff} ]{0,20}",
        "[\u{900}-\u{dff}\u{e00}-\u{eff} ]{0,20}",
        "[\u{c0}-\u{17f}\u{300}-\u{36f}]{0,30}",
        "[\u{ff01}-\u{ff9f}\u{3300}-\u{33ff}\u{fb00}-\u{fdff}]{0,12}",
        "(\u{1f355}|\u{2764}\u{fe0f}|\u{1f469}\u{200d}\u{1f467}|1\u{fe0f}\u{20e3}|\u{1f170}|\u{1d4ef}){0,8}",
    ];
    proptest::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_vector_has_unit_length_or_is_not_there(text in texts()) {
        let rows = rows(&text);
        prop_assert!(rows.iter().all(|&row| (row as usize) < ROWS));
        let Some(vector) = embed(&text) else {
            // Signs have rows, but no direction of their own.
            prop_assert!(pieces(&rows).all(|piece| !piece.contains(is_of_a_word)));
            return Ok(());
        };
        prop_assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-5);
        for (found, expected) in vector.iter().zip(naive_vector(&rows)) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
        }
    }

    /// Nothing of one text is left for the next.
    #[test]
    fn scratch_keeps_no_secret(first in texts(), second in texts()) {
        let mut scratch = Scratch::default();
        MODEL.rows(&first, &mut scratch);
        prop_assert_eq!(MODEL.rows(&second, &mut scratch), rows(&second));
    }

    /// A space parts two texts for good, whatever their ends: so work and rows grow with the text, not faster. But one
    /// text is in one script: traditional characters are read by what else there is.
    #[test]
    fn texts_beside_each_other_do_not_mix(first in texts(), second in texts()) {
        let [first, second] = [first, second].map(|text| simplified(&text));
        let both = rows(&format!("{first} {second}"));
        prop_assert_eq!(both, [rows(&first), rows(&second)].concat());
    }

    #[test]
    fn traditional_chinese_is_read_as_simplified(text in "[\u{4e00}-\u{9fff}a-z ，。]{0,20}") {
        let text = format!("我們{text}");
        prop_assert_eq!(rows(&text), rows(&simplified(&text)));
    }

    #[test]
    fn rows_are_never_more_than_characters(text in texts()) {
        prop_assert!(rows(&text).len() <= text.to_lowercase().nfkd().count());
    }

    /// Canonically equal texts, and compatible ones, are the same text.
    #[test]
    fn normal_forms_make_no_difference(text in texts()) {
        let expected = rows(&text);
        prop_assert_eq!(rows(&text.nfd().collect::<String>()), expected.clone());
        prop_assert_eq!(rows(&text.nfkc().collect::<String>()), expected);
    }

    #[test]
    fn case_makes_no_difference(text in "[ -~\u{e0}-\u{f6}\u{430}-\u{44f}\u{4e00}-\u{9fff}]{0,60}") {
        prop_assert_eq!(rows(&text.to_uppercase()), rows(&text));
    }

    #[test]
    fn ascii_is_no_special_case(text in "[ -~\t\n]{0,60}") {
        let mut wide = rows(&format!("{text} \u{4e00}"));
        let mut one = rows("\u{4e00}");
        prop_assert!(!one.is_empty());
        while let Some(row) = one.pop() {
            prop_assert_eq!(wide.pop(), Some(row));
        }
        prop_assert_eq!(wide, rows(&text));
    }
}

/// The file of the neighbours against plain arithmetic over the table.
#[test]
fn neighbours_are_the_nearest_rows_with_their_cosines() {
    let cosine = |a: u32, b: u32| {
        let (x, y) = (naive_vector(&[a]), naive_vector(&[b]));
        let dot: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        dot / (length(&x) * length(&y))
    };
    for word in ["dog", "october", "\u{5317}\u{4eac}"] {
        let [row] = rows(word)[..] else {
            panic!("{word} is one row")
        };
        let near: Vec<(u32, f32)> = MODEL.neighbours(row).collect();
        assert!(near.len() >= 8, "{word} has neighbours");
        let mut all: Vec<f64> = (0..ROWS as u32)
            .filter(|&other| other != row)
            .map(|other| cosine(row, other))
            .collect();
        all.sort_by(|a, b| b.total_cmp(a));
        for (index, (other, said)) in near.iter().enumerate() {
            assert!((cosine(row, *other) - f64::from(*said)).abs() < 0.005);
            assert!((all[index] - f64::from(*said)).abs() < 0.005);
        }
    }
    let pieces: Vec<&str> = pieces(
        &MODEL
            .neighbours(rows("dog")[0])
            .map(|(row, _)| row)
            .collect::<Vec<_>>(),
    )
    .collect();
    assert!(pieces.contains(&"dogs"), "{pieces:?}");
}

#[test]
fn names_weigh_more_than_articles() {
    let weight = |word: &str| MODEL.weight(rows(word)[0]);
    assert!(weight("the") < 0.2 && weight(".") < 0.2);
    assert!(weight("dog") > 3.0 && weight("python") > 3.0);
}

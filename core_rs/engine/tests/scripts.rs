//! Scripts and identifiers from end to end: what is spelt in another way is found all the same, before memories that share
//! most of their words or digits with it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use recalld_engine::ids::Micros;
use recalld_engine::types::NewMemory;

/// A question, the memory that answers it, and memories that are easily taken for it.
type Case = (&'static str, &'static str, &'static [&'static str]);

/// What else every namespace holds.
const OTHERS: [&str; 14] = [
    "The printer on the second floor needs new toner.",
    "Maria prefers window seats on long flights.",
    "The quarterly budget was approved without changes.",
    "Our dog Biscuit is afraid of thunder.",
    "他喜欢在周末去爬山。",
    "我們明天下午開會討論預算。",
    "会議の資料は共有フォルダにあります。",
    "妹は来月から大阪で働きます。",
    "회의 자료는 어제 메일로 보냈습니다.",
    "동생은 부산에서 일해요.",
    "Der Zug nach Hamburg fährt um acht Uhr ab.",
    "La réunion est reportée à jeudi prochain.",
    "Он купил новый велосипед.",
    "deploy finished after 42 seconds",
];

/// Asserts that every question finds its memory first.
fn assert_first(kind: &str, cases: &[Case]) {
    let bench = Bench::new();
    let mut failures = Vec::new();
    for (index, (question, right, near)) in cases.iter().enumerate() {
        let space = ns(&[kind, &index.to_string()]);
        let texts = near.iter().chain([right]).chain(&OTHERS);
        bench.put(&space, texts.map(|text| memory(text, text)).collect());
        let found = bench.find(&space, question);
        if found.first().map(String::as_str) != Some(right) {
            failures.push(format!("{question}: {right} expected, found {found:?}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

#[rustfmt::skip]
const CHINESE: &[Case] = &[
    ("台湾的高铁票", "我訂了一張去臺灣的高鐵票。", &["他订了一张去上海的飞机票。", "我們下週去臺灣旅行。"]),
    ("臺灣的高鐵票", "我订了一张去台湾的高铁票。", &["他訂了一張去上海的飛機票。", "我们下周去台湾旅行。"]),
    ("女儿对花生过敏吗？", "女兒對花生過敏，不能吃蛋糕。", &["兒子對貓毛過敏。", "女兒喜歡吃蛋糕。"]),
    ("女兒對花生過敏嗎？", "女儿对花生过敏，不能吃蛋糕。", &["儿子对猫毛过敏。", "女儿喜欢吃蛋糕。"]),
    ("头发", "她剪了頭髮。", &["她發現了問題。", "她買了帽子。"]),
    ("發現問題", "测试时发现了三个问题。", &["她去理发店剪了头发。", "这个问题已经解决了。"]),
    ("看著妳", "他一直看着你。", &["他一直看着她的照片。", "你没有看见他。"]),
    ("喝咖啡", "早上我喜歡喝咖啡。", &["早上我喜歡喝茶。", "咖啡機壞了。"]),
    ("张伟的电话", "張偉的電話是分機四二。", &["張琪的電話是分機四三。", "張偉住在高雄。"]),
    ("用Python写的脚本", "备份是用 Python 寫的腳本。", &["备份是用 Rust 写的程序。", "Python 课在周三。"]),
    ("iPhone手機", "他新买了一部iPhone手机。", &["他新买了一部华为手机。", "他弄丢了耳机。"]),
    ("ＶＩＰ会员", "她是VIP會員。", &["她是普通会员。", "VIP 室在二楼。"]),
    ("預約牙醫", "周五预约了牙医。", &["周五预约了理发。", "牙医说要少吃糖。"]),
    ("軟體更新", "服务器上的软体更新完成了。", &["服务器上的硬盘坏了。", "软件工程师在开会。"]),
];

#[test]
fn chinese() {
    assert_first("zh", CHINESE);
}

#[rustfmt::skip]
const JAPANESE: &[Case] = &[
    ("ラーメン", "昨日の夜はらーめんを食べた。", &["昨日の夜はカレーを食べた。", "らいねん引っ越します。"]),
    ("りんご", "リンゴを三つ買った。", &["ミカンを三つ買った。", "りかの宿題をした。"]),
    ("ねこ", "ネコを飼いはじめた。", &["イヌを飼いはじめた。", "コネクタを買った。"]),
    ("ｺﾝﾋﾟｭｰﾀ", "新しいコンピュータが届いた。", &["新しいコンテナが届いた。", "新しい机が届いた。"]),
    ("コンピュータ", "新しいコンピューターが届いた。", &["新しいコンテナが届いた。", "新しい机が届いた。"]),
    ("カ\u{3099}ラス", "ガラスのコップを割った。", &["カラスが鳴いていた。", "コップを洗った。"]),
    ("引越し", "来週引っ越しをします。", &["来週引き出しを直します。", "来週試合をします。"]),
    ("申込みの締切", "申し込みの締め切りは金曜日です。", &["支払いの締め日は金曜日です。", "申請書は金曜日に印刷します。"]),
    ("斎藤さん", "齋藤さんは経理部にいます。", &["佐藤さんは経理部にいます。", "斎場は駅の前です。"]),
    ("渡邊先生", "渡辺先生の授業は月曜です。", &["渡部先生の授業は火曜です。", "田中先生の授業は水曜です。"]),
    ("東京タワー", "週末に東京タワーへ行った。", &["週末に東京駅へ行った。", "通天閣はタワーだ。"]),
    ("１２３号室", "会議は123号室です。", &["会議は321号室です。", "試験は124号室です。"]),
];

#[test]
fn japanese() {
    assert_first("ja", JAPANESE);
}

#[rustfmt::skip]
const KOREAN: &[Case] = &[
    ("학교", "학교에서 친구를 만났다.", &["학원에서 친구를 만났다.", "교회에서 노래를 불렀다."]),
    ("병원에", "병원은 다음 주에 간다.", &["약국은 다음 주에 간다.", "원병이 왔다."]),
    ("도서관이 어디야", "도서관은 시청 옆에 있다.", &["미술관은 시청 옆에 있다.", "도서를 반납했다."]),
    ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} 수업", "한글 수업은 수요일이다.", &["영어 수업은 수요일이다.", "한국 여행을 했다."]),
    ("김치찌개", "점심에 김치 찌개를 먹었다.", &["점심에 된장 찌개를 먹었다.", "김밥을 먹었다."]),
    ("ＡＢＣ마트", "신발은 ABC마트에서 샀다.", &["신발은 백화점에서 샀다.", "ABC를 배웠다."]),
    ("커피숍", "커피숍에서 회의를 했다.", &["커피를 쏟았다.", "회의실에서 회의를 했다."]),
    ("생일선물", "엄마 생일 선물로 스카프를 샀다.", &["엄마 생신에 케이크를 샀다.", "선물 가게는 닫았다."]),
];

#[test]
fn korean() {
    assert_first("ko", KOREAN);
}

#[rustfmt::skip]
const OTHER_SCRIPTS: &[Case] = &[
    ("Елка", "Ёлка стоит в гостиной.", &["Полка стоит в гостиной.", "Ель растёт в саду."]),
    ("МОСКВА", "Москва ждёт нас летом.", &["Мост ждёт ремонта.", "Лето было жарким."]),
    ("οδος", "Η οδός Ερμού είναι κλειστή.", &["Η πλατεία Ερμού είναι κλειστή.", "Ο οδηγός είναι εδώ."]),
    ("كتاب", "الكِتَابُ على الطاولة", &["القلم على الطاولة", "كتب الرسالة أمس"]),
    ("احمد", "أحمد يعمل في البنك", &["محمود يعمل في البنك", "حامد في البيت"]),
    ("محمد", "مـحـمـد سافر الى دبي", &["أحمد سافر الى دبي", "محمود في دبي"]),
    ("مدرسه", "المدرسة قريبة من البيت", &["المكتبة قريبة من البيت", "درس جديد"]),
    ("رقم 12345", "رقم الطلب ١٢٣٤٥", &["رقم الطلب ١٢٣٤٦", "رقم الهاتف ٩٩٩"]),
    ("שלום", "שָׁלוֹם לכולם", &["תודה לכולם", "שלוש ילדים"]),
    ("ירושלים", "נסענו ל־ירושלים ביום שישי", &["נסענו ל־חיפה ביום שישי", "יריד הספרים"]),
    ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า", &["ฉันชอบดื่มชาตอนเช้า", "กาลครั้งหนึ่ง"]),
    ("हिन्दी", "वह हिन्\u{200d}दी पढ़ता है", &["वह गणित पढ़ता है", "हिम गिरती है"]),
    ("क़लम", "मेरी क\u{93c}लम खो गई", &["मेरी किताब खो गई", "कमल खिला है"]),
    ("duong pho", "Đường phố rất đông", &["Chợ rất đông", "Phòng rất đẹp"]),
    ("Hà Nội", "Chúng tôi sống ở Ha Noi", &["Chúng tôi sống ở Hue", "Nội thất mới"]),
    ("Mueller", "Frau Müller kommt am Montag.", &["Frau Möller kommt am Montag.", "Frau Maier kommt am Montag."]),
    ("Muller", "Frau Müller kommt am Montag.", &["Frau Möller kommt am Montag.", "Frau Maier kommt am Montag."]),
    ("Müller", "Frau Mueller kommt am Montag.", &["Frau Moeller kommt am Montag.", "Frau Maier kommt am Montag."]),
    ("Strasse", "Die Straße ist gesperrt.", &["Die Brücke ist gesperrt.", "Die Strahlen sind hell."]),
    ("GROSSE", "Die große Halle ist frei.", &["Die kleine Halle ist frei.", "Das Gras ist nass."]),
    ("ISTANBUL", "İstanbul'da hava güzel.", &["Ankara'da hava güzel.", "Hava soğuk."]),
    ("kirmizi", "Kırmızı araba satıldı.", &["Mavi araba satıldı.", "Kırık cam."]),
    ("cafe\u{301}", "Meet at the café by the river.", &["Meet at the bakery by the river.", "The cave by the river is closed."]),
    ("naive", "His naïve answer surprised us.", &["His native answer surprised us.", "His short answer surprised us."]),
];

#[test]
fn other_scripts() {
    assert_first("other", OTHER_SCRIPTS);
}

#[rustfmt::skip]
const INVISIBLE_CHARACTERS: &[Case] = &[
    ("password reset", "The pass\u{ad}word re\u{200b}set link is sent.", &["The pass for the set is sold.", "The link is broken."]),
    ("\u{feff}invoice", "The invoice is overdue.", &["The invitation is overdue.", "The voice is loud."]),
    ("\u{200f}kubernetes\u{200e}", "We run kubernetes on three nodes.", &["We run nomad on three nodes.", "Three nodes are down."]),
    ("src/main.rs", "See src/\u{200b}main.rs for the entry.", &["See src/lib.rs for the entry.", "The main entry is closed."]),
    ("\u{202e}grafana\u{202c}", "The grafana board is red.", &["The graphite board is red.", "The board meets on Friday."]),
    ("cooperate", "They co\u{2060}operate with us.", &["They operate with us.", "They compete with us."]),
];

#[test]
fn invisible_characters() {
    assert_first("invisible", INVISIBLE_CHARACTERS);
}

#[rustfmt::skip]
const IDENTIFIERS: &[Case] = &[
    ("ORD-2024-00017", "Order ORD-2024-00017 was refunded.", &["Order ORD-2024-00018 was refunded.", "Order ORD-2023-00017 was refunded.", "Order 17 of 2024 was refunded."]),
    ("what happened to ord_2024_00018?", "Order ORD-2024-00018 was lost.", &["Order ORD-2024-00017 was lost.", "Order ORD-2024-00081 was lost."]),
    ("E1042", "error E1042: disk full", &["error E1043: disk full", "error E104: disk full", "error F1042: disk full"]),
    ("v2.3.1", "We deployed version 2.3.1 on Monday.", &["We deployed version 2.3.2 on Monday.", "We deployed v2.3 on Monday.", "We deployed v1.2.3 on Monday."]),
    ("2.3.1", "Release v2.3.1 is out.", &["Release v2.3.2 is out.", "Release v2.3.10 is out.", "Release v3.2.1 is out."]),
    ("DE89370400440532013000", "Pay to DE89 3704 0044 0532 0130 00.", &["Pay to DE89 3704 0044 0532 0131 00.", "Pay to GB29 NWBK 6016 1331 9268 19."]),
    ("DE89 3704 0044 0532 0130 00", "iban: DE89370400440532013000", &["iban: DE89370400440532013001", "iban: GB29NWBK60161331926819"]),
    ("4111 1111 1111 1234", "card 4111111111111234 expired", &["card 4111111111114321 expired", "card 1234 expired"]),
    ("550e8400-e29b-41d4-a716-446655440000", "trace 550e8400-e29b-41d4-a716-446655440000 failed", &["trace 550e8400-e29b-41d4-a716-446655440001 failed", "trace 550e8401-e29b-41d4-a716-446655440000 failed"]),
    ("550e8400", "trace 550e8400-e29b-41d4-a716-446655440000 failed", &["trace 660e8400-e29b-41d4-a716-446655440000 failed", "trace 8400 failed"]),
    ("ab123456", "trace ab123456-e29b-41d4-a716-446655440000 failed", &["trace ab123457-e29b-41d4-a716-446655440000 failed", "trace cd123456-e29b-41d4-a716-446655440000 failed"]),
    ("nginx.conf", "the limit is set in /etc/nginx/nginx.conf", &["the limit is set in /etc/nginx/mime.types", "the limit is set in /etc/redis/redis.conf", "nginx has a limit, conf. page four"]),
    ("main.py", "the entry point is src/app/main.py", &["the entry point is src/app/views.py", "the entry point is src/main/app.py"]),
    ("app/main.py", "see src/app/main.py", &["see src/web/main.py", "see src/app/main.rs"]),
    ("report.docx", "C:\\Users\\ann\\Documents\\report.docx is the draft", &["C:\\Users\\ann\\Documents\\report.pdf is the draft", "C:\\Users\\ann\\report\\notes.docx is the draft"]),
    ("docs.example.com", "read https://docs.example.com/guide/setup first", &["read https://shop.example.com/guide/docs first", "read https://docs.example.org/guide/setup first"]),
    ("guide/setup", "read https://docs.example.com/guide/setup?x=1 first", &["read https://docs.example.com/guide/install first", "the setup guide of the printer"]),
    ("ann.lee", "write to ann.lee@example.com", &["write to ann.kim@example.com", "write to bob.lee@example.com", "Ann wrote, Lee answered"]),
    ("example.com", "write to ann.lee@example.com", &["write to ann.lee@example.org", "write to ann.lee@sample.com"]),
    ("get_user_name", "call getUserName() before login", &["call getUserMail() before login", "the user gave a name, get it"]),
    ("getUserName", "def get_user_name(id): is slow", &["def get_user_mail(id): is slow", "def set_user_name(id): is slow"]),
    ("get-user-name", "lib/get_user_name.py is slow", &["lib/get_user_mail.py is slow", "lib/set_user_name.py is slow"]),
    ("MAX_RETRY_COUNT", "maxRetryCount defaults to five", &["maxRetryDelay defaults to five", "the count of open tickets is five"]),
    ("retry count", "MAX_RETRY_COUNT defaults to five", &["MAX_POOL_SIZE defaults to five", "RETRY_DELAY defaults to five"]),
    ("HTTPServer", "http_server listens on port 80", &["http_client listens on port 80", "the mail server listens on port 80"]),
    ("9f86d08", "fixed in 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", &["fixed in 9f86d091884c7d659a2feaa0c55ad015a3bf4f1b", "fixed in 1884c7d659a2feaa0c55ad015a3bf4f1b9f86d08"]),
    ("9f86d08188", "fixed in 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", &["fixed in 9f86d091884c7d659a2feaa0c55ad015a3bf4f1b", "fixed in a2feaa0"]),
    ("commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "bisect says 9f86d08 is bad", &["bisect says 9f86d09 is bad", "bisect says 884c7d6 is bad"]),
    ("CVE-2024-3094", "xz is hit by CVE-2024-3094", &["xz is hit by CVE-2024-3049", "xz is hit by CVE-2023-3094"]),
    ("192.168.1.17", "the printer is at 192.168.1.17:9100", &["the printer is at 192.168.1.18:9100", "the printer is at 192.168.17.1:9100"]),
    ("RFC 9110", "RFC9110 says so", &["RFC9111 says so", "page 9110 says so"]),
    ("std::collections::HashMap", "use HashMap of std::collections::HashMap here", &["use BTreeMap of std::collections::BTreeMap here", "the std map here"]),
    ("hash map", "std::collections::HashMap is faster", &["std::collections::BTreeMap is faster", "std::collections::HashSet is faster"]),
    ("C++", "the driver is written in C++", &["the driver is written in C", "the driver is written in C#"]),
];

#[test]
fn identifiers() {
    assert_first("id", IDENTIFIERS);
}

#[rustfmt::skip]
const NUMBERS: &[Case] = &[
    ("+49 89 1234-5678", "Call me: 089 12345678", &["Call me: 089 12345679", "Call me: 030 87654321"]),
    ("(555) 123-4567", "Her number is +1 555 123 4567.", &["Her number is +1 555 123 4568.", "Her number is +1 555 321 4567."]),
    ("5551234567", "Her number is 555.123.4567.", &["Her number is 555.123.4568.", "Her number is 123.555.4567."]),
    ("13812345678", "客户电话：138 1234 5678", &["客户电话：139 1234 5679", "客户电话：138 1234 5670"]),
    ("$1200.50", "The rent is $1,200.50 a month.", &["The rent is $1,200.75 a month.", "The rent is $1,250.50 a month."]),
    ("1200.50", "Die Miete ist 1.200,50 €.", &["Die Miete ist 1.200,75 €.", "Die Miete ist 1.250,50 €."]),
    ("1.200,50 €", "The rent is €1,200.50.", &["The rent is €1,200.75.", "The rent is €1,250.50."]),
    ("12,50", "The ticket costs 12.50 EUR.", &["The ticket costs 12.75 EUR.", "The ticket costs 50 EUR."]),
    ("3000円", "参加費は¥3,000です。", &["参加費は¥3,500です。", "参加者は300人です。"]),
    ("$1,200", "The deposit is 1200.00 dollars.", &["The deposit is 1250.00 dollars.", "The deposit is 200.00 dollars."]),
    ("15%", "Churn rose to 15 percent.", &["Churn rose to 50 percent.", "Churn rose to 25 percent."]),
    ("１５％", "Churn rose to 15% in spring.", &["Churn rose to 51% in spring.", "Churn rose to 5% in spring."]),
    ("3rd floor", "The lab is on the third floor.", &["The lab is on the fourth floor.", "The lab has 3 doors."]),
    ("fifth attempt", "The 5th attempt worked.", &["The 6th attempt worked.", "The 15th attempt worked."]),
    ("2.5kg", "The parcel weighs 2.5 kg.", &["The parcel weighs 5.2 kg.", "The parcel weighs 2.5 lb."]),
];

#[test]
fn numbers() {
    assert_first("number", NUMBERS);
}

#[rustfmt::skip]
const DATES_AND_TIMES: &[Case] = &[
    ("2024-05-17", "Ann signed on May 17, 2024.", &["Ann signed on May 18, 2024.", "Ann signed on June 17, 2024.", "Ann signed on May 17, 2023."]),
    ("May 17, 2024", "Ann signed on 2024-05-17.", &["Ann signed on 2024-05-18.", "Ann signed on 2024-06-17.", "Ann signed on 2023-05-17."]),
    ("17 May 2024", "Ann signed on May 17th 2024.", &["Ann signed on May 24th 2017.", "Ann signed on March 17th 2024."]),
    ("17th of May, 2024", "Ann signed on 17/05/2024.", &["Ann signed on 18/05/2024.", "Ann signed on 17/06/2024."]),
    ("2024年5月17日", "Ann signed on May 17, 2024.", &["Ann signed on May 18, 2024.", "Ann signed on May 17, 2023."]),
    ("2024-05-17", "合同在2024年5月17日签署。", &["合同在2024年5月18日签署。", "合同在2024年6月17日签署。"]),
    ("2024년 5월 17일", "Ann signed on 2024/5/17.", &["Ann signed on 2024/5/18.", "Ann signed on 2024/7/15."]),
    ("5/17/2024", "Ann signed on 17 May 2024.", &["Ann signed on 18 May 2024.", "Ann signed on 17 June 2024."]),
    ("5/6/2024", "Ann signed on 5 June 2024.", &["Ann signed on 7 June 2024.", "Ann signed on 5 July 2024."]),
    ("5/6/2024", "Ann signed on May 6, 2024.", &["Ann signed on May 7, 2024.", "Ann signed on July 6, 2024."]),
    ("May 2024", "Ann signed on 2024-05-17.", &["Ann signed on 2024-06-17.", "Ann signed on 2023-05-17.", "Ann signed 2024 papers in March."]),
    ("what happened in May of 2024?", "合同在2024年5月签署。", &["合同在2024年6月签署。", "合同在2023年5月签署。"]),
    ("2024年5月", "Ann signed in May 2024.", &["Ann signed in June 2024.", "Ann signed in May 2023."]),
    ("on May 17", "Ann signed on 2024-05-17.", &["Ann signed on 2024-05-18.", "Ann signed on 2024-06-17."]),
    ("17.05.2024", "Ann signed on May 17, 2024.", &["Ann signed on May 5, 2024.", "Ann signed on May 7, 2024."]),
    ("2024-05-17", "backup-20240517.tar.gz is whole", &["backup-20240518.tar.gz is whole", "backup-20240617.tar.gz is whole"]),
    ("Sept 3, 2025", "The visa ends on 2025-09-03.", &["The visa ends on 2025-09-30.", "The visa ends on 2025-03-09."]),
    ("14:30", "The call is at 2:30 pm.", &["The call is at 2:45 pm.", "The call is at 4:30 pm."]),
    ("2:30pm", "The call is at 14:30.", &["The call is at 14:45.", "The call is at 12:30."]),
    ("14h30", "The call is at 2:30 p.m.", &["The call is at 3:30 p.m.", "The call is at 2:15 p.m."]),
    ("9:05", "The train leaves at 09:05.", &["The train leaves at 09:50.", "The train leaves at 05:09."]),
    ("14:30", "会议在下午2点30分开始。", &["会议在下午3点30分开始。", "会议在上午2点15分开始。"]),
    ("午後2時半に始まる", "打ち合わせは14:30に始まる。", &["打ち合わせは14:45に始まる。", "打ち合わせは12:30に始まる。"]),
    ("5 pm", "The shop closes at 17:00.", &["The shop closes at 18:00.", "The shop closes at 15:00."]),
];

#[test]
fn dates_and_times() {
    assert_first("date", DATES_AND_TIMES);
}

#[test]
fn the_day_of_a_memory_is_found_however_it_is_asked_for() {
    const DAY: i64 = 86_400 * SECOND;
    // 2024-05-15T00:00Z.
    let first = 1_715_731_200 * SECOND;
    let bench = Bench::new();
    let space = ns(&["days"]);
    let texts = [
        "went for a walk",
        "met Tom",
        "fixed the bike",
        "read a book",
        "had soup",
    ];
    let items = texts.iter().enumerate().map(|(index, text)| NewMemory {
        occurred_at: Some(Micros(first + index as i64 * DAY)),
        ..memory(text, text)
    });
    bench.put(&space, items.collect());
    let later = NewMemory {
        occurred_at: Some(Micros(first + 40 * DAY)),
        ..memory("painted", "painted a fence")
    };
    bench.put(&space, vec![later]);
    for question in [
        "what did I do on May 17, 2024?",
        "May 17",
        "17 May 2024",
        "5/17/2024",
        "2024年5月17日",
        "2024-05-17",
    ] {
        assert_eq!(
            bench.find(&space, question)[0],
            "fixed the bike",
            "{question}"
        );
    }
    assert_eq!(
        bench.find(&space, "what happened in June 2024?")[0],
        "painted"
    );
}

#[rustfmt::skip]
const EMOJI: &[Case] = &[
    ("🍕", "We had 🍕 on Friday.", &["We had 🍔 on Friday.", "We had soup on Friday."]),
    ("👍🏽", "Ann answered 👍", &["Ann answered 👎", "Ann answered yes"]),
    ("👍", "Ann answered 👍🏿", &["Ann answered 👎🏿", "Ann answered yes"]),
    ("🇫🇷", "Trip: 🇫🇷 in June", &["Trip: 🇩🇪 in June", "Trip: 🇷🇫 in June"]),
    ("🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}", "Trip: 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} in June", &["Trip: 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} in June", "Trip: 🏴 in June"]),
    ("👩\u{200d}💻", "Role: 👩\u{200d}💻", &["Role: 👩\u{200d}🔬", "Role: 👨\u{200d}🚒"]),
    ("❤️", "Tom sent ❤ again", &["Tom sent 💔 again", "Tom sent it again"]),
    ("⭐", "Rated ⭐ by Ann", &["Rated ⛔ by Ann", "Rated well by Ann"]),
    ("⏰", "Set the ⏰ for Ann", &["Set the ⌛ for Ann", "Set the table for Ann"]),
    ("1️⃣", "First step: 1 only", &["First step: 2 only", "First step: all"]),
];

#[test]
fn emoji() {
    assert_first("emoji", EMOJI);
}

#[test]
fn a_query_of_punctuation_finds_nothing_and_says_so() {
    let bench = Bench::new();
    let space = ns(&["punctuation"]);
    let mut texts = OTHERS.to_vec();
    texts.extend(["?!", "Really?!", "...", "- a list\n- of things", "？！。"]);
    bench.put(&space, texts.iter().map(|text| memory("", text)).collect());
    for text in [
        "?!",
        "...",
        "？！。",
        "—",
        "\u{200d}\u{feff}",
        "\u{301}",
        "«»",
        "-- ;",
    ] {
        let found = bench.engine.search(&space, &query(text), None).unwrap();
        assert!(found.hits.is_empty(), "{text}");
        let degraded: Vec<_> = found
            .degraded
            .iter()
            .map(|one| (one.arm, one.reason))
            .collect();
        assert_eq!(
            degraded,
            [("dense", "no_known_words"), ("lexical", "no_known_words")],
            "{text}"
        );
    }
    // An emoji has no vector either, but a term: only what has it is found.
    bench.put(&space, vec![memory("rain", "☔ all day")]);
    assert_eq!(bench.find(&space, "☔?!"), ["rain"]);
}

"""Texts by script, to measure the approximate counter of tokens on.

Sentences as agents note them, each in its own words, and what stands beside sentences: code, JSON, numbers, hashes.
Texts are some of them joined, as a function of a seed.
"""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import hashlib
import json
import random
from typing import Final

TEXTS_OF_A_SCRIPT: Final = 40

_ENGLISH = """
The customer asked for a refund because the second shipment arrived two weeks late.
Remember that she prefers to be called after lunch, never before ten in the morning.
The migration failed at the last step, so the team restored the backup and tried again on Monday.
He doesn't drink coffee anymore; his doctor told him to switch to herbal tea.
Our contract with the supplier ends in March and needs three months' notice.
I think the blue version of the report was better, although nobody else seemed to notice.
After a long discussion they decided to move the office closer to the train station.
Please don't share the draft with anyone outside the department until it has been approved.
"""

_LATIN = """
Der Kunde möchte die Rechnung künftig per E-Mail erhalten und nicht mehr mit der Post.
Nach der Besprechung wurde beschlossen, den Liefertermin um zwei Wochen zu verschieben.
La réunion de jeudi a été déplacée à la semaine prochaine, car la directrice est en voyage.
Elle préfère être assise près de la fenêtre et ne mange pas de viande.
El cliente pidió la devolución porque el segundo paquete llegó con dos semanas de retraso.
A equipa decidiu mudar o servidor para outra cidade antes do fim do verão.
Il cliente ha chiesto di ricevere la fattura entro la fine del mese.
De klant wil liever 's middags gebeld worden en nooit voor tien uur.
Klient poprosił o zwrot pieniędzy, ponieważ druga przesyłka przyszła z dwutygodniowym opóźnieniem.
Zákazník požádal o vrácení peněz, protože druhá zásilka přišla o dva týdny později.
Müşteri, ikinci gönderi iki hafta geç geldiği için para iadesi istedi.
Khách hàng yêu cầu hoàn tiền vì lô hàng thứ hai đến muộn hai tuần.
Asiakas pyysi hyvitystä, koska toinen lähetys saapui kaksi viikkoa myöhässä.
Az ügyfél visszatérítést kért, mert a második csomag két héttel később érkezett.
Kunden bad om pengarna tillbaka eftersom den andra leveransen kom två veckor för sent.
Pelanggan meminta pengembalian dana karena kiriman kedua terlambat dua minggu.
"""

_CYRILLIC = """
Клиент попросил вернуть деньги, потому что вторая посылка пришла на две недели позже.
Она предпочитает, чтобы ей звонили после обеда, и никогда раньше десяти утра.
Миграция не удалась на последнем шаге, поэтому команда восстановила резервную копию.
Договор с поставщиком заканчивается в марте, и предупредить нужно за три месяца.
Клієнт попросив повернути гроші, бо друга посилка прийшла на два тижні пізніше.
Вона хоче сидіти біля вікна і не їсть м'яса.
Клиентът поиска парите си обратно, защото втората пратка закъсня с две седмици.
После долгого обсуждения решили перенести офис ближе к вокзалу.
"""

_GREEK = """
Ο πελάτης ζήτησε επιστροφή χρημάτων επειδή το δεύτερο δέμα έφτασε με δύο εβδομάδες καθυστέρηση.
Προτιμά να της τηλεφωνούν μετά το μεσημέρι και ποτέ πριν από τις δέκα το πρωί.
Η μεταφορά απέτυχε στο τελευταίο βήμα και η ομάδα επανέφερε το αντίγραφο ασφαλείας.
Το συμβόλαιο με τον προμηθευτή λήγει τον Μάρτιο.
Μετά από μεγάλη συζήτηση αποφάσισαν να μεταφέρουν το γραφείο πιο κοντά στον σταθμό.
Δεν πίνει πια καφέ, γιατί ο γιατρός τού είπε να πίνει τσάι.
"""

_ARABIC = """
طلب العميل استرداد المبلغ لأن الشحنة الثانية وصلت متأخرة أسبوعين.
تفضل أن يتصل بها الناس بعد الظهر وليس قبل الساعة العاشرة صباحا.
فشلت عملية النقل في الخطوة الأخيرة فاستعاد الفريق النسخة الاحتياطية.
ينتهي العقد مع المورد في مارس ويجب الإشعار قبل ثلاثة أشهر.
مشتری درخواست بازپرداخت کرد چون بسته دوم دو هفته دیر رسید.
او ترجیح می دهد کنار پنجره بنشیند و گوشت نمی خورد.
بعد نقاش طويل قرروا نقل المكتب إلى مكان أقرب من محطة القطار.
لا تشارك المسودة مع أي شخص خارج القسم حتى تتم الموافقة عليها.
"""

_HEBREW = """
הלקוח ביקש החזר כספי כי המשלוח השני הגיע באיחור של שבועיים.
היא מעדיפה שיתקשרו אליה אחרי הצהריים ולעולם לא לפני עשר בבוקר.
ההעברה נכשלה בשלב האחרון ולכן הצוות שחזר את הגיבוי.
החוזה עם הספק מסתיים במרץ ויש להודיע שלושה חודשים מראש.
אחרי דיון ארוך הוחלט להעביר את המשרד קרוב יותר לתחנת הרכבת.
הוא כבר לא שותה קפה, הרופא אמר לו לעבור לתה צמחים.
"""

_DEVANAGARI = """
ग्राहक ने पैसे वापस माँगे क्योंकि दूसरा पार्सल दो सप्ताह देर से पहुँचा।
वह चाहती है कि उसे दोपहर के बाद फ़ोन किया जाए, सुबह दस बजे से पहले कभी नहीं।
आख़िरी चरण में स्थानांतरण विफल हो गया, इसलिए टीम ने बैकअप बहाल किया।
आपूर्तिकर्ता के साथ अनुबंध मार्च में समाप्त होता है।
लंबी चर्चा के बाद उन्होंने कार्यालय को स्टेशन के पास ले जाने का निर्णय लिया।
वह अब कॉफ़ी नहीं पीता, डॉक्टर ने उसे चाय पीने को कहा है।
"""

_THAI = """
ลูกค้าขอเงินคืนเพราะพัสดุชิ้นที่สองมาถึงช้าไปสองสัปดาห์
เธออยากให้โทรหาหลังอาหารกลางวัน ไม่ใช่ก่อนสิบโมงเช้า
การย้ายระบบล้มเหลวในขั้นตอนสุดท้าย ทีมจึงกู้คืนข้อมูลสำรอง
สัญญากับผู้จัดหาจะสิ้นสุดในเดือนมีนาคม
หลังจากพูดคุยกันนาน พวกเขาตัดสินใจย้ายสำนักงานไปใกล้สถานีรถไฟ
เขาไม่ดื่มกาแฟแล้ว หมอบอกให้เปลี่ยนเป็นชา
"""

_CHINESE = """
客户要求退款，因为第二批货物晚到了两个星期。
她希望大家在午饭后给她打电话，不要在上午十点之前。
迁移在最后一步失败了，所以团队恢复了备份，星期一再试一次。
我们与供应商的合同三月份到期，需要提前三个月通知。
客戶要求退款，因為第二批貨物晚到了兩個星期。
他已經不喝咖啡了，醫生建議他改喝花草茶。
经过长时间的讨论，他们决定把办公室搬到离火车站更近的地方。
在得到批准之前，请不要把草稿发给部门以外的人。
"""

_JAPANESE = """
二回目の荷物が二週間遅れて届いたため、お客様は返金を希望しました。
彼女は午前十時より前ではなく、昼食の後に電話してほしいと言っています。
移行は最後の段階で失敗したので、チームはバックアップを復元しました。
仕入れ先との契約は三月に終わり、三か月前の通知が必要です。
長い話し合いの後、事務所を駅の近くに移すことになりました。
彼はもうコーヒーを飲みません。医者にハーブティーを勧められたからです。
承認されるまで、下書きを部署の外の人に見せないでください。
データベースのサーバーは来週メンテナンスのために停止します。
"""

_KOREAN = """
두 번째 소포가 이 주일 늦게 도착해서 고객이 환불을 요청했습니다.
그녀는 오전 열 시 이전이 아니라 점심 식사 후에 전화해 주기를 원합니다.
마지막 단계에서 이전이 실패하여 팀은 백업을 복원했습니다.
공급업체와의 계약은 삼월에 끝나며 석 달 전에 알려야 합니다.
긴 논의 끝에 사무실을 기차역 가까이로 옮기기로 했습니다.
그는 이제 커피를 마시지 않고 의사의 권유로 차를 마십니다.
승인될 때까지 초안을 부서 밖의 사람에게 보여 주지 마세요.
다음 주에는 서버 점검으로 서비스가 중단됩니다.
"""

_CODE = [
    "def total(lines):\n    return sum(line.price * line.count for line in lines if not line.cancelled)\n",
    "for (const order of orders) {\n  if (order.status === 'open') {\n    await close(order.id);\n  }\n}\n",
    "impl Iterator for Parts<'_> {\n    type Item = Range<usize>;\n\n    fn next(&mut self) -> Option<Self::Item> {\n",
    "SELECT customer_id, SUM(amount) FROM payments WHERE paid_at >= '2024-01-01' GROUP BY customer_id;",
    '#!/bin/sh\nset -eu\ncd "$(dirname "$0")"\ntar -czf backup.tar.gz --exclude=\'*.tmp\' data/\n',
    '    if err := rows.Scan(&id, &name); err != nil {\n        return nil, fmt.Errorf("scan: %w", err)\n    }\n',
]

_MARKDOWN = [
    "## Open questions\n\n- Who pays for the second shipment?\n- **When** does the contract end? See [notes](a.md).\n",
    "| step | state | owner |\n| --- | --- | --- |\n| backup | done | operations |\n| migration | failed | data |\n",
    "1. Stop the service: `systemctl stop billing`\n2. Restore the backup\n3. Start it again and check the log\n",
    '<ul class="orders">\n  <li><a href="/orders/77">Order 77</a></li>\n</ul>\n',
    "# Billing\n\nRuns every night at two. *Never* stop it while `export` is working.\n\n> Ask the owner first.\n",
    "```sh\ncurl -fsS http://localhost:8080/health | jq .status\n```\n\nIt should print `serving`.\n",
    "<p>Dear <b>customer</b>,<br>your order was <em>shipped</em> today.</p>\n<hr>\n",
    "- [x] Restore the backup\n- [ ] Tell the customers\n- [ ] Write down what happened ([template](t.md))\n",
]

_EMOJI = ["🙂🙃😀🎉🎉", "👍🏽👏🏾", "👩‍👩‍👧‍👦🏳️‍🌈", "🇩🇪🇯🇵🇧🇷", "🚀🔥💡📦✈️", "❤️💔✨☀️", "🍎🥐🍜☕", "🐶🦊🐢🦉"]


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _json(rng: random.Random) -> str:
    order = {
        "order_id": f"{rng.randrange(10_000)}-{rng.choice('ABCD')}",
        "status": rng.choice(["open", "shipped", "cancelled"]),
        "lines": [
            {
                "sku": f"SKU-{rng.randrange(1000)}",
                "quantity": rng.randrange(1, 9),
                "price": rng.randrange(9999) / 100,
            }
            for _ in range(rng.randrange(1, 4))
        ],
        "address": {
            "street": rng.choice(["Main Street", "Park Avenue"]),
            "zip": f"{rng.randrange(99999):05}",
        },
        "paid": rng.random() < 0.5,
    }
    return json.dumps(order, indent=rng.choice([None, 2]))


def _log(rng: random.Random) -> str:
    time = f"2024-05-{rng.randrange(10, 30)}T{rng.randrange(10, 24)}:{rng.randrange(10, 60)}:{rng.randrange(10, 60)}Z"
    level = rng.choice(["INFO", "WARN", "ERROR"])
    return f"{time} {level} [worker-{rng.randrange(32)}] order {rng.randrange(100_000)} took {rng.randrange(5000)} ms"


def _numbers(rng: random.Random) -> str:
    return ", ".join(
        f"{rng.randrange(10**6) / 10 ** rng.randrange(4):.{rng.randrange(3)}f}" for _ in range(8)
    )


def _hash(rng: random.Random) -> str:
    return hashlib.sha256(str(rng.random()).encode()).hexdigest()[: rng.choice([16, 32, 64])]


_SENTENCES: Final = {
    "English": _lines(_ENGLISH),
    "other Latin": _lines(_LATIN),
    "Cyrillic": _lines(_CYRILLIC),
    "Greek": _lines(_GREEK),
    "Arabic": _lines(_ARABIC),
    "Hebrew": _lines(_HEBREW),
    "Devanagari": _lines(_DEVANAGARI),
    "Thai": _lines(_THAI),
    "Chinese": _lines(_CHINESE),
    "Japanese": _lines(_JAPANESE),
    "Korean": _lines(_KOREAN),
    "emoji": _EMOJI,
    "code": _CODE,
    "Markdown, HTML": _MARKDOWN,
}

_MADE: Final = {"JSON": _json, "logs": _log, "numbers": _numbers, "hashes": _hash}

SCRIPTS: Final = (*_SENTENCES, *_MADE)
"""What texts there are."""


def texts_in(script: str) -> list[str]:
    """Different texts of a script, most of them of some sentences."""
    rng = random.Random(script)
    if script in _MADE:
        return [
            "\n".join(_MADE[script](rng) for _ in range(rng.randrange(1, 6)))
            for _ in range(TEXTS_OF_A_SCRIPT)
        ]
    sentences = _SENTENCES[script]
    return [" ".join(rng.sample(sentences, rng.randrange(1, 5))) for _ in range(TEXTS_OF_A_SCRIPT)]

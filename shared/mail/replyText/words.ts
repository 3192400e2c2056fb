/**
 * Lists the words that mail clients put around a quoted message, in lower case and in the Unicode form NFC. Each kind
 * of line has one list. The lists cover the following languages (ISO 639-1 codes): en de fr es pt ca gl it ro nl pl cs
 * sk sl hr sr bg ru uk sv no da is fi et lv lt hu el tr id ms vi th zh ja ko ar fa he hi eu.
 */

const words = (text: string) => text.trim().split(/\s+/)
const phrases = (text: string) =>
  text
    .split('|')
    .map((phrase) => phrase.trim())
    .filter(Boolean)

/**
 * Lists the words for "wrote" that count only as whole words. The listed words are the verbs of attribution lines such
 * as `On …, Bob wrote:`.
 */
export const WROTE_WORDS: ReadonlySet<string> = new Set(
  words(`
    wrote writes written
    schrieb schrieben schreibt geschrieben
    écrit ecrit écrivait
    escribió escribio escribe escrito
    escreveu escreve escreveram escribiu
    escriure escrit escrigué
    scritto scrive scrisse
    scris scrie
    schreef schrijft geschreven
    napisał napisała napisano napisana napisane pisze
    napsal napsala napsali píše napísal napísala
    napisal napisala napisao piše napisa
    написал написала написано пишет писал
    написав написала пише написа писао написао
    skrev skriver skrifaði
    kirjoitti kirjoittaa kirjutas rakstīja rašė parašė
    írta írt
    έγραψε εγραψε έγραψες γράφει
    yazdı yazmış
    menulis viết
    كتب كتبت نوشت כתב כתבה
  `),
)

/**
 * Lists words for "wrote" in scripts without spaces between words, and verbs that take suffixes. The search finds these
 * words anywhere in a line, even inside a longer word.
 */
export const WROTE_RUNS: readonly string[] = words(`
  写道 寫道 写了 写到 来信 書きました 書き込み のメール 작성 썼습니다 쓰여짐 보냈습니다 เขียน ने लिखा
`)

/** Lists the beginnings of attributions without a verb, such as Horde's `Quoting Bob <…>:` and Gmail's Catalan form. */
export const QUOTING_STARTS: readonly string[] = phrases(`
  quoting |zitat von |citando |citant |citazione |citát |cytowanie |quoting: |citerar |citerer
  |missatge de |message de |mensaje de |цитирую |quoted from |citeren |idézet
`)

/** Names the kinds of header lines of a quoted message. */
export type HeaderKind = 'from' | 'sent' | 'date' | 'to' | 'cc' | 'subject'

const LABELS: Record<HeaderKind, string> = {
  from: `from|von|absender|de|expéditeur|remitente|remetente|da|mittente|van|afzender|od|nadawca
    |odesílatel|odosielateľ|от|отправитель|від|відправник|från|avsändare|fra|avsender|afsender
    |lähettäjä|feladó|από|αποστολέας|de la|expeditor|kimden|gönderen|từ|người gửi|发件人|寄件者
    |寄件人|發件人|差出人|送信元|보낸 사람|보낸사람|발신인|من|المرسل|מאת|де|šalje|saatja|kellelt|nuo
    |dari|จาก|di|remitent|frá|kutoka|از|sender|sent by
    |no|nork|प्रेषक|daripada`,
  sent: `sent|gesendet|envoyé|envoyé le|envoyée|enviado|enviada|enviado el|enviada em|enviado em|inviato
    |verzonden|wysłano|wysłane|odesláno|odoslané|отправлено|надіслано|відправлено|skickat|sendt
    |lähetetty|elküldve|στάλθηκε|εστάλη|trimis|gönderildi|đã gửi|发送时间|寄件日期|傳送時間|發送時間
    |送信日時|보낸 날짜|보낸날짜|تاريخ الإرسال|أُرسلت|נשלח|enviat|poslano|изпратено|dikirim|ส่ง|saadetud
    |message du|received|sent at|送信日
    |gönderme tarihi|تم الإرسال|poslato|nosūtīts|išsiųsta|enviado o|enviada o|bidalia|भेजा गया|dihantar|ngày gửi`,
  date: `date|datum|fecha|data|dato|дата|päiväys|päivämäärä|pvm|dátum|ημερομηνία|tarih|ngày|日期|日時
    |날짜|التاريخ|תאריך|dată|kuupäev|datums|tanggal|วันที่|dagsetning|时间
    |日付|दिनांक|tarikh`,
  to: `to|an|empfänger|à|a|pour|para|per|aan|do|dla|komu|pro|кому|till|til|vastaanottaja|címzett
    |προς|către|catre|kime|alıcı|đến|tới|收件人|收件者|宛先|받는 사람|받는사람|إلى|אל|לכבוד|do koga|za|до
    |kepada|ถึง|destinataire|destinatario|destinatário|ontvanger|adresat|получатель
    |kam|nori|प्रति|người nhận|prima|per a|adressaat`,
  cc: `cc|kopie|copie|copie à|copia|cópia|kopi|kopia|копия|копія|kopio|másolat|másolatot kap
    |κοιν|κοινοποίηση|bilgi|抄送|副本|참조|نسخة|עותק|dw|cci|bcc|reply-to|reply to|antwort an
    |répondre à|responder a|odpowiedz do|importance|priority|attachments|anlagen|dúvida`,
  subject: `subject|betreff|objet|asunto|assunto|oggetto|onderwerp|temat|předmět|predmet|predmet správy
    |тема|ämne|emne|aihe|tárgy|θέμα|subiect|konu|chủ đề|tiêu đề|主题|主旨|主題|件名|제목|الموضوع|נושא
    |assumpte|naslov|относно|teema|tēma|tema|perihal|subjek|เรื่อง|efni|موضوع|sujet|betr
    |gaia|विषय|zadeva`,
}

/** Maps each label of a mail header to the kind of the header, so that one look-up finds the kind of a line. */
export const HEADER_LABELS: ReadonlyMap<string, HeaderKind> = new Map(
  (Object.keys(LABELS) as HeaderKind[]).flatMap((kind) =>
    phrases(LABELS[kind]).map((label): [string, HeaderKind] => [label, kind]),
  ),
)

/**
 * Lists the words for "message", as in `-----Original Message-----`. A word for "message" counts only in the title
 * above a quoted message.
 */
export const MESSAGE_RUNS: readonly string[] = phrases(`
  message|nachricht|mensaje|mensagem|messaggio|missatge|bericht|wiadomo|zpráv|správ|sporočil
  |poruk|сообщени|письм|повідомлен|лист|съобщение|порука|brev|meddelande|meddelelse|melding|besked
  |viesti|kiri|üzenet|levél|μήνυμ|μηνύμ|mesaj|ileti|pesan|thư|tin nhắn|ข้อความ|邮件|郵件|信件|メッセージ|メール
  |메시지|메일|رسالة|پیام|הודעה|e-mail|email|mail|original|skeyti
`)

/** Lists words for "original", as in a title `Original Message` without dashes. */
export const ORIGINAL_RUNS: readonly string[] = phrases(`
  origin|ursprüng|oorspronkelijk|oryginal|původní|pôvodn|izvorn|исходн|оригинал|първоначал|ursprunglig
  |opprinnelig|oprindelig|alkuperäi|eredeti|αρχικ|orijinal|özgün|gốc|原始|元の|원본|الأصلية|מקורית
  |оригінал|початков|izvirn|algne|upprun|iniţial|inițial|asli|اصلی|ต้นฉบับ|मूल|原邮件|原郵件|replied|reply message
`)

/**
 * Lists the words for "forwarded" in many languages. A line with such a word marks the mail as a forward, which
 * `replyText` does not shorten.
 */
export const FORWARDED_RUNS: readonly string[] = phrases(`
  forwarded|forward message|begin forward|weitergeleitet|transféré|transfere|réexpédié|reenviado
  |reenviada|encaminhada|encaminhado|reenviat|inoltrato|redirecționat|redirecţionat|doorgestuurd|przekazan|przekazyw
  |przesłan|přeposlan|preposlan|posredovan|proslijeđen|прослеђен|пересылаем|пересланн|пересланe
  |переадрес|переслан|препратен|vidarebefordrat|vidarebefordrade|videresendt|áframsent|välitetty
  |edelleenlähetetty|edastatud|pārsūtīt|persiųst|továbbított|προωθημέν|iletilen|yönlendirilen
  |diteruskan|chuyển tiếp|ส่งต่อ|转发|轉寄|轉發|転送|전달|معاد توجيه|إعادة توجيه|المعاد|بازارسال|הועבר
`)

/** Lists words for "above", as in `##- Reply above this line -##`. */
export const ABOVE_RUNS: readonly string[] = phrases(`
  above|oberhalb|über diese|au-dessus|ci-dessus|acima|encima|arriba|sobre esta|sopra|boven|powyżej|ponad|nad |iznad|ovanför|över den
  |over denne|ovenfor|yläpuol|fölé|felett|fölött|πάνω|deasupra|üst|yukarı|выше|вище|над|phía trên|di atas|เหนือ|上|위|فوق|أعلى|بالا|מעל|ऊपर
`)

/** Lists words for "reply" and "write", as in `##- Reply above this line -##`. */
export const REPLY_RUNS: readonly string[] = phrases(`
  reply|respon|write|type|antwort|schreib|répon|repon|écri|saisi|escrib|escrev|rispo|scriv|antwoord|reageer|odpow|odpov|odgov
  |отве|відпов|отгов|пиш|svar|vasta|válasz|απάντ|απαντ|răspun|yanıt|cevap|trả lời|balas|jawab|ตอบ|回复|回復|回覆|返信|答复|답장|회신|رد|پاسخ|השב|תשובה|उत्तर
`)

/** Lists words for "line", as in `##- Reply above this line -##`. */
export const LINE_RUNS: readonly string[] = phrases(`
  line|zeile|ligne|linha|línea|riga|regel|lijn|lini|wiersz|řád|čár|riad|crt|vrstic|rad|linje|rivi|viiva|sor|vonal|γραμμή|satır|çizgi
  |лини|строк|рядк|лінії|лінію|ред|dòng|baris|garis|บรรทัด|行|線|线|줄|선|سطر|خط|שורה|קו|पंक्ति
`)

/** Lists beginnings of the line that a phone or an app adds below a mail ("Sent from …"). */
export const SENT_STARTS: readonly string[] = phrases(`
  dictated|composed with|composed on|composed in|composed from|composed via|spoken into|sent by voice|sent hands-free|sent from|sent via|sent using|sent with|sent by|sent on|sent through|typed on|written on|posted from
  |this message was sent from|this email was sent from my|this e-mail was sent from my
  |gesendet|von meinem|von meiner|von unterwegs|mit meinem|versendet|verschickt|verfasst
  |diese nachricht wurde|diese e-mail wurde|provenance :|envoyé|envoyee|envoyée|enviado|enviada|mandado|enviat
  |inviato|inviata|trimis|verzonden|verstuurd|verstuurt|wysłano|wysłane|wysłana|odesláno|odoslané
  |poslano|poslato|изпратено|отправлено|послано|надіслано|відправлено|skickat|sendt|sent úr|lähetetty|saneltu|přeposláno z|diktiert|dicté|dictado|dettato|podyktowano
  |saadetud|nosūtīts|išsiųsta|elküldve|küldve|στάλθηκε|εστάλη|αποστολή|dikirim|đã gửi|được gửi|gửi từ
  |послато|dihantar|imetumwa|dërguar|ارسال از|გამოგზავნილია|ուղարկվել|ส่งจาก|发自|發自|发送自|来自|來自|傳送自|從我|从我|通过|私の|나의|내|أرسل|أُرسل|مرسل|تم الإرسال|أُرسلت|ارسلت
  |ارسال شده|נשלח|bidalia|skickades|skickad|yahoo mail: search, organize, conquer
`)

/** Lists words for `from`, `with` and `via` in many languages, as in the line "Sent from my phone". */
export const FROM_WORDS: readonly string[] = words(`
  from via with using von aus mit über de des depuis avec desde dende con da dal dalla tramite através com
  van vanaf vanuit met z ze s sa iz za с из з із от са от od från med fra úr din pe iš no từ dari από ze kutoka nga
`)

/** Lists words for `my` in many languages, as in the line "Sent from my phone". */
export const MY_WORDS: readonly string[] = words(`
  my meinem meiner mijn m'n mi mon ma mio mia meu minha min mojego mojej mého mojho mog mojega moje moja
  моего моей мого моєї моя моят мог meul môjho μου mano manu minu saya tôi mínum yangu im من
`)

/** Lists the ends of a line like "Sent from my phone" in languages that put the verb last. */
export const SENT_ENDS: readonly string[] = phrases(`
  gesendet|geschickt|versendet|beziehen|herunterladen|gönderildi|edinin|küldve|送信|から送信されました
  |から送信|送信しました|を入手|보냄|보냈습니다|보낸|bidalia|से भेजा गया|থেকে পাঠানো|에서 발송|에서 전송됨|다운로드|받기|发送|傳送|寄出|發送|发来的|发送的
`)

/**
 * Lists names of devices and apps, as in the line "Sent from my iPhone". Without such a name, the line may be a
 * sentence of the writer.
 */
export const DEVICE_WORDS: readonly string[] = phrases(`
  iphon|ipad|ipod|айфон|אייפון|on the go|on the move|ios|android|samsung|galaxy|blackberry|windows|outlook|hotmail|yahoo|gmail|aol
  |huawei|xiaomi|redmi|oneplus|motorola|nokia|htc|sony|xperia|nexus|oppo|realme|smartphone|phone
  |mobile|mobil|móvil|móbil|handheld|handy|tablet|telefon|téléphone|teléfono|telefono|telefone
  |celular|celulare|cellulare|puhelim|puhelin|телефон|смартфон|мобил|мобіл|планшет|κινητό|手机|手機
  |スマートフォン|携帯|휴대폰|스마트폰|الهاتف|جوال|הנייד|điện thoại|my mac|macbook|treo|verizon|t-mobile
  |vodafone|proton|spark|superhuman|zoho|fastmail|thunderbird|k-9|gmx|web.de|freemail|airmail
  |polymail|mailspring|mailbox|my cell|cell phone|missive|tutanota|posteo|mail app|e-mail app|webmail|device|邮箱|郵箱|unterwegs
`)

/**
 * Lists opening phrases of a legal notice. The function `dropFooter` removes a last paragraph with such a phrase only
 * if the paragraph also holds {@link LEGAL_WORDS}.
 */
export const LEGAL_STARTS: readonly string[] = phrases(`
  this e-mail|this email|this message|this communication|this information|this transmission
  |the information|the content of|the contents of|tato zpráva|tento e-mail|informace obsažené
  |цей лист|це повідомлення|denne meldingen|detta e-post|tämä sähköposti|το παρόν|αυτό το μήνυμα|confidentiality|disclaimer|notice:|legal notice|important notice
  |privileged|if you are not the intended|if you have received this
  |diese e-mail|diese email|diese nachricht|dieses e-mail|der inhalt dieser|haftungsausschluss|hinweis:
  |ce message|ce courriel|cet e-mail|cet email|les informations contenues|avis de confidentialité
  |este mensaje|este correo|la información contenida|aviso legal|aviso de confidencialidad
  |esta mensagem|este e-mail|este email|as informações contidas|aviso de confidencialidade
  |questo messaggio|questa e-mail|questa email|le informazioni contenute|il presente messaggio
  |dit bericht|deze e-mail|de informatie in dit|ta wiadomość|niniejsza wiadomość|treść tej
  |detta meddelande|detta mail|denne e-mail|denne e-post|tämä viesti|данное сообщение|это сообщение
  |ez az üzenet|ez az e-mail|acest mesaj|bu e-posta|bu ileti|本邮件|本郵件|本メール|이 메일|이 이메일
`)

/** Lists the legal words of a legal notice below a mail. */
export const LEGAL_WORDS: readonly string[] = phrases(`
  confidential|privileged|intended only|intended solely|intended for|intended recipient|addressee
  |vertraulich|confidentiel|destinataire|confidencial|riservat|destinatari|vertrouwelijk|geadresseerde
  |poufn|adresat|adressat|adresát|důvěrn|адресат|одержувач|конфіденційн|modtager|mottak|mottag|vastaanottaj
  |címzett|destinatar|alıcı|εμπιστευτικ|παραλήπτ|受信者|收件人|수신인|the recipient|konfidentiell|fortrolig|luottamuksel|конфиденциальн|bizalmas|confidențial|gizli
  |保密|机密|機密|기밀
`)

/**
 * Lists the first words of a bounce (a delivery report). A bounce stays whole, because people need the headers of the
 * failed mail (RFC 3464).
 */
export const BOUNCE_STARTS: readonly string[] = phrases(`
  delivery has failed to these recipients|this is the mail system at host|mail delivery failed
  |this message was created automatically by mail delivery software|delivery status notification
  |your message couldn't be delivered|your message wasn't delivered|hi. this is the qmail-send
  |the following addresses had permanent|the following address failed|the following recipient(s)
  |the following recipient could|the following recipient cannot|the following recipients could|the following recipients cannot
  |i'm sorry to have to inform you that your message|undelivered mail returned
  |an error occurred while trying to deliver|could not deliver the following|message not delivered
  |final-recipient:|reporting-mta:|diagnostic-code:|original-recipient:|action: failed|remote-mta:
`)

/**
 * Lists the opening phrases of the footers that mailing lists and newsletters add. The sender's own text ends above
 * such a footer.
 */
export const FOOTER_STARTS: readonly string[] = phrases(`
  to unsubscribe|click here to unsubscribe|unsubscribe from|unsubscribe here|unsubscribe:|unsubscribe <
  |you received this message because|you are receiving this because
  |you received this email because|you are receiving this email because|manage your subscription
  |reply to this email directly or view it on|sender notified by
`)

/** Lists words for people from whom the writer may have got something, as in `Inviato da mia sorella Anna`. */
export const PERSON_WORDS: readonly string[] = words(`
  sister brother mother father wife husband boss friend colleague daughter neighbour assistant schwester
  bruder mutter vater frau mann chefin chef freund freundin kollege kollegin tochter nachbar soeur sœur
  frère mère père femme mari amie collègue fille voisin voisine assistante hermana hermano madre padre mujer
  esposa marido jefe jefa amigo amiga colega hija vecino vecina irmã irmão mãe esposo chefe filha vizinho
  sorella fratello moglie marito capo amico amica figlia vicino vicina zus broer moeder vader vrouw baas
  vriend vriendin collega dochter buurman syster bror mamma pappa fru kollega vän dotter søster kone mand
  sjef venn siostra brat mama tata żona mąż szef szefowa kolega koleżanka siostry brata mamy taty żony męża
  szefa kolegi koleżanki
`)

/**
 * Recognises the purpose of a link by pairs of ideas in the link's text: mail and settings, mail and its end, a
 * registration and its completion, or a sign-in without a password. Each list contains the word stems for one idea in
 * some fifty languages, in lower case.
 */
import { PASSWORD, VERIFY } from './linkStems.ts'

const anyOf = (...stems: string[]): RegExp => new RegExp(stems.join('|'), 'u')

/**
 * Sets the maximum length of a link text in which two ideas (such as mail and settings) tell the purpose, because in a
 * longer text, the two ideas may belong to two sentences.
 */
const PHRASE_MAX_CHARS = 90

/** Matches a word for a mail, a notice, or a mailing list. */
const NOTICE = anyOf(
  String.raw`e-?mail|mails?(?!\p{L})|communication|rappels?(?!\p{L})|pryslyst|mail(?=voorkeur|einstellung|instelling|indstilling|inställning)|newsletter|not[iìí]f[iì][ck]|mejl|e-?post|e-?past|avisering|utskick|vars(?:el|ler|ling)|meldingen|berichten|courriel|correos?(?!\p{L})|correus?(?!\p{L})|sähköpost|ilmoitu|viestejä|tölvupóst|tilkynning|wiadomości|powiadom|upozorn|oznámen|értesítés|e-?posta|bildirim|ileti(?!ş)|e-?poruk|e-?pošt|obavijest|obavešten|obvestil|sporočil|laišk|el\. ?pašt|pranešim|paziņojum|vēstul|teavitus|kirj[au]|mezu|posta(?!\p{L})|jakinarazpen|njoftim|thông báo|e-?mel(?!\p{L})|pemberitahuan|abiso|barua pepe|arifa|bwletin`,
  String.raw`ειδοποι|μηνύμ|письм|писем|уведомлен|почт|рассылк|(?<!\p{L})лист(?:и|ів)(?!\p{L})|сповіщен|пошт|розсилк|имейл|имејл|извести|известува|съобщени|порак|порук|обавешт`,
  `メール|通知|邮件|郵件|메일|알림|رسائل|البريد|إشعارات|מייל|דוא|התראות|ایمیل|اعلان|ईमेल|सूचना|ইমেইল|বিজ্ঞপ্তি|อีเมล|แจ้งเตือน`,
  String.raw`ծանուց|შეტყობინებ|bildiriş|хабарландыр|билдирүү|bildirishnoma|мэдэгдэл|огоҳ|апавяшч|kemennadenn|hysbysiad|fógra|(?<!\p{L})brath|kennisgewing|fráboðan|sciig|ogeysii|ìfitónilétí|sanarwa|izaziso|avis(?:u|os)(?!\p{L})|agahdar|ئاگادار|خبرتیا|بر[ېيی]?ښ(?:نا)?ل[یي]ک|اطلاع|ئۇقتۇرۇش|জাননী|સૂચના|ਸੂਚਨਾ|அறிவிப்ப|నోటిఫికేషన్|ಅಧಿಸೂಚನೆ|അറിയിപ്പ|දැනුම්|အသိပေးချက်|ការជូនដំណឹង|ການແຈ້ງເຕືອນ|ማሳወቂያ`,
  `novin(?:k|ek)|nieuwsbrief|nyhetsbrev|nyhedsbrev|uutiskirj|bülten|jaunum|(?:bolet[ií][nm]|bulletin|butllet)|ziņ(?:as|u)|maily|utskick|comunica[çc]|novedades|novidades|actualités|דיוור|новин|вести`,
)

/** Matches a word for settings or preferences. */
const SETTING = anyOf(
  `preferen[csz]|preferin[tț]|preferènc|preferénc|preferênc|préférenc|einstellung|voorkeur|instelling|inställning|indstilling|innstilling|asetu[sk]|stillingu|ustawieni|nastaven|beállítás|setări|tercih|ayar(?:lar|ı)|postavk|nastavitv|nuostat|iestatījum|eelistus|hobespen|parapëlqim|cilësime|tùy chọn|cài đặt|pengaturan|keutamaan|tetapan|kagustuhan|mapendeleo|varslingsvalg|προτιμ|ρυθμίσ|настро(?:й|ек)|налаштув|поставк|подешавањ`,
  `configurac|configuraci|config(?!\\p{L})|ajust[ea]|axust[ea]|paràm[eè]tre|paramètre|param[eé]tr|impost\\p{L}{1,4}ion|ezarpen|arventenn|gosodiad|socruithe|roghainn|ynstelling|astellung|(?<!\\p{L})stilling|agord|dejin|mipangilio|saituna|izilungiselelo|sozlama|mîheng|settings|կարգավոր|პარამეტრ|баптау|жөндөө|тохиргоо|танзим|көйлә|налад|ڕێکخستن|امستنې|ترتیبات|تەڭشەك|সেটিং|સેટિંગ|ਸੈਟਿੰਗ|அமைப்பு|సెట్టింగ్|అమరిక|ಸೆಟ್ಟಿಂಗ್|ക്രമീകരണ|සැකසුම්|ဆက်တင်|ការកំណត់|ການຕັ້ງຄ່າ|ቅንብር`,
  `設定|偏好|设置|(?<!재)설정|تفضيلات|إعدادات|העדפות|הגדרות|تنظیمات|प्राथमिकता|सेटिंग|পছন্দ|সেটিংস|การตั้งค่า`,
)

/**
 * Matches words that mean to end or to refuse something. The list has no words for "cancel", because a reader can also
 * cancel the change of an address.
 */
const END = anyOf(
  String.raw`(?:turn|switch) off|no longer (?:want|wish)|stop (?:receiving|getting)|plus recevoir|désactiv|dej(?:ar|e|a) de recibir|no quiero|deixar? de rec|não quero|desa(?:c)?tiv|non vo(?:glio|gliate)|non vuoi più|disattiv|geen(?!\p{L}).{1,30} meer|niet meer|uitschakel|vill inte|sluta få|stäng av|ønsker ikke|ønsker du ikke|ikk(?:e|je) (?:l[eæ]n\p{L}{2,5} )?(?:ønsk|ynskj|vil)\p{L}{0,3} (?:å |at )?(?:motta|modta|få|ha)|inte (?:längre )?(?:vill|önskar)(?: att)? (?:få|ta emot|motta|ha)|vil ikke|slå av|en halua|lopeta|vil ekki|hætta|nie chc|rezygnuj|wyłącz|nechc|nezas[ií]l|nezasiela|vypn[oú]|nem (?:szeretn|kérek|akar)|kikapcsol|nu mai|opre[sș]te|dezactiv|istemiyor|kapat|durdur|ne žel|isključi|izklopi|nebenor|atsisak|išjung|nevēl|atteik|izslēg|ei soovi|loobu|lülita välja|no vull|deixa de rebre|non quero|ez (?:dut|duzu).{0,30} nahi|utzi|nuk dua|ndalo|çaktivizo|không muốn|tắt|ngừng|tidak (?:ingin|mahu|mau)|matikan|hentikan|ayaw|i-off|itigil|sitaki|zima(?!\p{L})|acha kupokea|(?:roi['’]r )?gorau i dderbyn`,
  `δεν θέλ|διακοπή|απενεργοπ|не хо[чт]|отключ|больше не|вимкн|більше не|не искам|спиране|спри(?:\\s|те)|изключ|не сакам|исклучи|не жел|искључи`,
  `受け取らない|[のを]停止|をオフ|不想再|关闭|關閉|停用|받지 ?않|끄기|해제|중단|لم أعد|لا أرغب|لا أريد|إيقاف|(?:איני|לא) רוצה|כיבוי|הפסק|نمی ?خواهم|خاموش|توقف|بند کړ|नहीं चाह|बंद कर|চাই না|বন্ধ|ไม่ต้องการ|(?<!เ)ปิด|หยุด`,
  `nepřej|už (?:od nás )?nech|slipp|geen zin|não pretend|no (?:desea|deseas)|(?:ne|plus) souhait|δεν επιθυμ|nevēlat|vairs ne|לא מעוניי`,
)

/** Matches a word for a subscription to mail. */
const MAIL_SUBSCRIPTION = anyOf(
  String.raw`subscri[cp]|subskri|suscripci|inscri[cç]|iscrizion|assinatura|abon+[aeio]|abonim|aboniment|prenumera|pretplat|předplat|predplat|odb[eě]r(?!\p{L}{3})|naročnin|tellimus|harpidetz|tilauk|áskrift|feliratkoz|berlangganan|langganan|abunə|abone|abunalyk|obuna|đăng ký`,
  `подписк|підписк|падпіск|абонам|абонаме|претплат|обуна|жазыл|захиалг|συνδρομ|εγγραφ|բաժանորդ|გამოწერ|اشتراک|اشتراك|מינוי|מנוי|सदस्यता|সাবস্ক্রি|সদস্যতা|சந்தா|చందా|ಚಂದಾ|വരിക്കാ|購読|订阅|訂閱|구독`,
)

/** Matches a word that means to cancel something. */
const CANCEL = anyOf(
  String.raw`cancel|annul|anul|stornier|kündig|beend|beëindig|opseg|opzeg|stopze|atcel|atšauk|atsisak|nutrauk|otkaž|otkaz|zruš|odhl[aá]s|lemond|megszünt|töröl|(?<!\p{L})peru|avbryt|avslut|afslut|opsig|säg upp|sag op|segja upp|tühista|lõpeta|zrezygn|rezygn|prekli[cč]|poništ|prekin|iptal|batal|huỷ|hủy|nuligi|ezeztatu|utzi|ukončit|ukončí|mbyll|canslo|cealaigh|lagħv|ləğv|bekor`,
  `откаж|отказ|отмен|скасу|скасов|адмяні|прекрат|припин|поништ|прекин|токтот|тоқтат|цуцла|ακυρ|διακο|չեղ|გაუქმ|إلغاء|ألغ|لغو|منسوخ|לבטל|ביטול|בטל|रद्द|বাতিল|ரத்து|రద్దు|ರದ್ದು|റദ്ദ|રદ|ਰੱਦ|අවලංගු|ပယ်ဖျက်|បោះបង់|ຍົກເລີກ|ยกเลิก|解約|取り消|取消|취소|해지`,
)

/** Matches a request not to send something, such as `Don't send me review requests`. */
const SEND_NOT = /^(?:please )?(?:don['’]t|do not|stop) (?:send|e-?mail|mail)(?:ing)? me(?!\p{L})/u

/** Matches a reader's request for removal from something. */
const REMOVE_ME = anyOf(
  String.raw`(?:take|remove) me|streich|(?:me|nous) retirer|quit(?:ar)?me|remover-me|toglimi|rimuovimi|haal m[ei]j|haal my|ta bort mig|fjern m[ei]g|poista minut|usuń mnie|vyřa[dď]|vyra[dď]|töröl|scoate-mă|șterge-mă|ukloni me|odstrani me|išbrauk|izņem|eemalda mind|esborra['’]m|удалит\p{L}* меня|исключит\p{L}* меня|видалит\p{L}* мене|премахнете ме|διαγράψ|להסרה|הסר\p{L}* אותי`,
)

/** Matches a word for a list. */
const LIST = anyOf(
  String.raw`(?<!\p{L})list|llista|lijst|(?<!\p{L})lys(?!\p{L})|seznam|zoznam|popis|sąraš|sarakst|nimekir|спис|λίστα|רשימ`,
)

/** Matches a word that means to allow something. */
const ALLOW = anyOf(
  String.raw`(?<!\p{L})(?:approve|trust|authori[sz]e|allow)|zulassen|freigeb|autoris|autoriz|goedkeur|godkänn|godkend(?!else)|godkjenn(?!else)|hyväksy|zatwierd|schvál|jóváhagy|aprob|разреш|дозвол|onayla|許可|允许|允許|승인`,
)

/** Matches a word for a device. */
const DEVICE = anyOf(
  `device|gerät|appareil|dispositiv|dispozitiv|apparaat|enhe[td]|laite|urządzeni|zařízen|zariaden|eszköz|устройств|пристр|cihaz|端末|デバイス|设备|裝置|기기`,
)

/**
 * Matches infinitives and imperatives of verbs that mean to complete something. The pattern excludes past forms,
 * because `registration completed` is a report and no request.
 */
const COMPLETE = anyOf(
  String.raw`abschlie(?:ß|ss)|vollende|termine[rz](?!\p{L})|finalise[rz]|compl[eé]te[rz](?!\p{L})|complet(?:ar|a|e)(?!\p{L})|conclui(?:r|a)?(?!\p{L})|finaliza(?:r|ți|re)?(?!\p{L})|finalizează|completa(?:re)?(?!\p{L})|conclud|voltooi(?!d)|slutför(?!d|t)|fuldfør(?!t)|gennemfør(?!t)|fullfør(?!t)|viimeistele|ljúk(?:a|tu)|dokończ(?!on)|zakończ(?!on)|dokonč(?:it|ete|iť|ite|aj)|befejezés|fejez(?:d|ze) be|véglegesít|tamamla(?!n)|dovrši(?!l)|završi(?!l)|užbai(?:g|k)|pabei(?:dz|gt)|lõpeta(?!t|ti|s)|lõpule|amaitu|bukatu|përfundo(?!i)|selesaikan|lengkapkan|kumpletuhin|kamilisha`,
  `ολοκληρώ(?:στε|σετε|ν)|ολοκλήρωση|заверш(?:ить|ите|ити|іть)|завърш(?:ете|и(?!л))|довърш(?:ете|ите|и(?!л))|заврши(?!л)|доврши(?!л)`,
  `أكمل|إكمال|استكمال|השלמת|השלם|השלימו|להשלים|تکمیل|पूरा कर|पूर्ण कर|সম্পূর্ণ কর|ให้เสร็จ`,
  String.raw`abzuschlie(?:ß|ss)|dokončí(?:te|š)|dokončan|dokončen[íi]e?(?!\p{L})|biste dovršili|menyelesaikan|(?<!\p{L})rond(?:t|en)?(?!\p{L})|af te ronden`,
  String.raw`echuiñ|mahuman|gwblhau|por fini(?!\p{L})|gera .{0,20}lidna|meitsje .{0,20}ôf|chríochnú|rematar|pou w fini|temamkirin|ofzeschl|tlesti|acabar|dhammaystir|përfunduar|matapos|yakunla|uqedele|скончыць|завршили|аяқта|аякто|дуусга|анҷом|якунла|ավարտ|დასასრულ|تەواو|بشپړ|مکمل|פֿאַרענדיק|פארענדיק|ለማጠናቀቅ|সম্পন্ন|પૂરી|पूर्ण|पूरा|ਪੂਰੀ|ಪೂರ್ಣ|പൂർത്തി|முடிக்க|పూర్తి|සම්පූර්ණ|ပြီးမြောက်|បញ្ចប់|ສຳເລັດ`,
)

/** Matches a word for the registration of a person. */
const REGISTRATION = anyOf(
  String.raw`registr|registo(?!\p{L})|rexistro|inscription|inscripción|inscrição|iscrizione|anmeldung|rekisteröit|skráning|rejestracj|regisztráci|înregistr|kayd|kayıt|üyeli[kğ]|reģistr|registre|erregistro|regjistrim|pendaftaran|pagpaparehistro|usajili`,
  `εγγραφ|регистр|реєстр|التسجيل|הרשמה|ثبت ?نام|पंजीकरण|নিবন্ধন|ลงทะเบียน`,
  `qeydiyyat|enskri|pagrehistro|cofrestr|skráseting|chlárú|qeydkirin|umeldung|reġistrazzj|diiwaangelin|yxatdan|bhalisa|alynmagy|рэгістрац|тіркел|катто|бүртгэл|бақайдгир|ўйхатдан|գրանց|რეგისტრ|تۆمار|نوم.?لیکن|رجسٹر|راجستر|רעגיסטר|ምዝገባ|নিবন্ধ|નોંધણી|नोंदणी|दर्ता|ਰਜਿਸਟ|ನೋಂದಣಿ|രജിസ്ട്രേഷൻ|பதிவ|నమోదు|ලියාපදිංචි|စာရင်းသွင်း|ចុះឈ្មោះ|ລົງທະບຽນ`,
)

/**
 * Matches a request to complete a registration. Its languages distinguish a request from a report only by the word
 * order.
 */
const COMPLETES =
  /登録を?完了(?:する|して)|完成.{0,4}(?:注册|註冊)|가입 ?완료하|가입을 ?완료|hoàn (?:tất|thành)(?: việc)? đăng ký/u

const WITHOUT_BEFORE = String.raw`(?<!\p{L})(?:ouni|sûnder|sonder|hep|walay|bê|sens|san|mingħajr|ngaphandle|бе|առանց|بێ|بې|پرته|بغیر|אָן|אן|ያለ|ਬਿਨਾਂ|kein(?:e|en)?|geen|inget|ingen|aucun|nessuna|nenhuma|ninguna|دون|bez|brez|ilma|pa|sense|sen|sem|sin|senza|sans|non serve|non serv[oe]no|pas besoin d[e'’]|no (?:se )?necesit(?:a|as|an|es)|ohne|without|no|zonder|utan|uden|uten|ilman|án|fără|heb|gan|tanpa|nang walang|bila|không(?: cần)?|χωρίς|без|ללא|בלי|بدون|बिना)(?: \p{L}{1,12}){0,3} `
const WITHOUT_AFTER = String.raw`[\p{L}\p{M}]{0,12}.{0,2}(?:nélkül|olmadan|girmeden|gerekmeden|yazmadan|(?<=\p{L})(?:s[iıüy]z|с[иіүу]з)(?!\p{L})|үггүй|оруулахгүй|керак эмас|kerak emas|გარეშე|بغیر|ಇಲ್ಲದೆ|ഇല്ലാതെ|(?:అవసరం )?లేకుండా|இல்லாமல்|இன்றி|વગર|વિના|शिवाय|बिन[ाै]|न टाकता|නැතිව|නොමැතිව|မလိုဘဲ|gabe|के बिना|ছাড়া|없이)`

/** Matches words that offer to sign in without a password, in every order of these words. */
const WITHOUT_PASSWORD = new RegExp(
  `${WITHOUT_BEFORE}(?:${PASSWORD.source})|(?:${PASSWORD.source})${WITHOUT_AFTER}|passwordless|passwortlos|(?<!\\p{L})be slaptažod|paroolita|salasanatta|parolasız|şifresiz|パスワードは?(?:なし|不要|い[らり]|入力せ)|(?:无需|無需|不需要?|無須|无须|不用)(?:输入|輸入|使用)?密[码碼]|免密|ไม่(?:ต้อง)?(?:ใช้|ใส่|กรอก)รหัสผ่าน|(?:មិនប្រើ|មិនចាំបាច់(?:មាន)?)ពាក្យសម្ងាត់|ບໍ່(?:ໃຊ້|ຕ້ອງໃສ່)ລະຫັດ|парол\\p{L}* (?:\\p{L}+ )?не (?:нуж|треб|потр)|password non serv`,
  'u',
)

/** Matches a verb that means to set something again, as in `reset`. */
const RESET = anyOf(
  `(?<!\\p{L})reset|zurücksetz|réinitialis|restablec|redefini|reimpost|reajust|zresetuj|zresetow|obnov|återställ|opnieuw inst|tilbakestill|nulstil|palaut|nollaa|sıfırla|visszaállít|reset(?:are|ează)|сброс|скинут|скидан|επαναφορ|リセット|重置|重設|재설정|إعادة (?:تعيين|ضبط)|איפוס|đặt lại|atur ulang`,
)

/** Matches a word for the data with which a person signs in. */
const CREDENTIALS = anyOf(
  `credential|anmeldedaten|anmeldeinformation|zugangsdaten|identifiants|credencia|credenzial|danych logowania|dane logowania|přihlašovací|prihlasovac|inloggningsuppgift|inloggegevens|påloggings(?:info|detalj)|legitimationsoplys|loginoplys|kirjautumistie|kimlik bilgi|hitelesítő|bejelentkezési adat|acreditări|учетн|учётн|облікових|διαπιστευτ|資格情報|认证信息|凭据|凭证|憑證|자격 ?증명|بيانات (?:الاعتماد|الدخول)|thông tin đăng nhập|kredensial`,
)

/** Tells whether a text offers to reset the data with which a person signs in. @param text is in lower case. */
export const resetsCredentials = (text: string): boolean =>
  text.length <= PHRASE_MAX_CHARS && RESET.test(text) && CREDENTIALS.test(text)

/**
 * Tells whether the text of a link offers the reader to stop mail, or to choose the received mail. @param text is in
 * lower case.
 */
export const choosesMail = (text: string): boolean =>
  text.length <= PHRASE_MAX_CHARS &&
  (SEND_NOT.test(text) ||
    (NOTICE.test(text) && (SETTING.test(text) || END.test(text))) ||
    (MAIL_SUBSCRIPTION.test(text) && CANCEL.test(text)) ||
    (REMOVE_ME.test(text) && LIST.test(text))) &&
  !PASSWORD.test(text) &&
  !VERIFY.test(text)

/**
 * Tells whether a text offers a sign-in without a password. Without this function, such a text would count as a text
 * about a password.
 * @param text is in lower case.
 */
export const isPasswordless = (text: string): boolean => WITHOUT_PASSWORD.test(text)

/** Tells whether a text asks to complete a registration or to allow a device. @param text is in lower case. */
export const asksToConfirm = (text: string): boolean =>
  text.length <= PHRASE_MAX_CHARS &&
  (COMPLETES.test(text) ||
    (COMPLETE.test(text) && REGISTRATION.test(text)) ||
    (ALLOW.test(text) && DEVICE.test(text)))

/**
 * Matches an event that a reader attends, a gift card, or a certificate. A reader confirms, activates or verifies them
 * with the same verbs as an address or an account.
 */
const EVENT_OR_GIFT = anyOf(
  String.raw`teilnahme|anwesenheit|particip|partecip|partetzip|(?<!\p{L})asist(?:en[cz]ia|ir)|assistènci|presença|présence|presénci|deltagelse|närvaro|aanwezigheid|deelname|oppmøte|osallistu|läsnäolo|mætingu|osalemi|osavõt|dalyvav|udział|účas[tť]|udeležb|részvétel|prisustv|dolazak|sudjelovan|presenoldeb|freastal|pjesëmarrj|katılım|iştirak|ishtirok|gatnaşm|beşdar|tham (?:dự|gia)|kehadiran|kahadiran|rawuh|pagdalo|pagtambong|kuhudhuria|argamuu|kaqaybgal|halarta|ukuba khona|ubukho|bywoning|kuzitabira`,
  `участи|участь|удзел|иштирок|қатысу|присъстви|присутност|присуств|долазак|παρουσί|συμμετοχ|մասնակց|დასწრებ|მონაწილეობ|ирц`,
  `حضور|حاضر|شرکت کی|شرڪت|ئامادەبوون|נוכחות|השתתפות|उपस्थिति|सहभागि|উপস্থিতি|ਹਾਜ਼ਰੀ|હાજરી|హాజర|සහභාගි|เข้าร่วม|ເຂົ້າຮ່ວມ|ចូលរួម|တက်ရောက်|出席|参加|參加|참석|참가|መገኘት`,
  `gift ?cards?|geschenk|gutschein|carte cadeau|cart[ãa]o-presente|tarjeta regalo|tarxeta regalo|carta regalo|cadeaukaart|presentkort|gavekort|lahjakort|gjafakort|kinkekaar|dāvanu|dovan|podarunkow|dárkov|darček|poklon-|darilni|ajándékkárty|card cadou|hediye kart|geskenkkaart|carta dono|thẻ quà|подар|δωροκάρτ|هدية|כרטיס מתנה|उपहार|บัตรของขวัญ|礼品卡|禮品卡|ギフト|기프트`,
  `certifi[ck]at|zertifikat|certifikát|certyfikat|sertifika|сертиф|証明書|证书|證書|인증서|সনদ|شهادة`,
)

/** Tells whether a text is about an event, a gift card or a certificate. @param text is in lower case. */
export const isEventOrGift = (text: string): boolean => EVENT_OR_GIFT.test(text)

/**
 * Matches a word for regular mail or for its subscription. In many languages, the same verb means to sign in and to
 * subscribe.
 */
const SUBSCRIPTION = anyOf(
  'newsletter|nieuwsbrief|nyhetsbrev|nyhedsbrev|uutiskir|hírlev|(?<!\\p{L})odber|(?<!\\p{L})odběr|рассылк|розсилк|bülten',
)

/** Tells whether a text that names a sign-in may offer a subscription instead. @param text is in lower case. */
export const subscribes = (text: string): boolean =>
  text.length <= PHRASE_MAX_CHARS && SUBSCRIPTION.test(text)

/** Matches a word for a request that the reader has made. */
const REQUEST = anyOf(
  `request|anfrage|anforderung|demande|solicitud|solicita[cç]|sol·licitud|richiesta|verzoek|begäran|anmod|forespør|pyynt|żądani|prośb|žádost|žiadost|požadav|kérés|cerere|istek|talep|zahtjev|zahtev|eskaera|iarrtas|iarratas|pieprasījum|prašym|taotlus|beiðni|yêu cầu|permintaan`,
  `αίτη|запрос|запит|искане|барање|захтев|リクエスト|要求|请求|請求|요청|طلب|בקש|درخواست|अनुरोध|অনুরোধ|คำขอ`,
)

/** Tells whether a text mentions a request that the reader has made. @param text is in lower case. */
export const namesRequest = (text: string): boolean => REQUEST.test(text)

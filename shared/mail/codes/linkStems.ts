/**
 * Lists the stems of the words that tell the purpose of a link, in about a hundred languages. The word stems and the
 * compared texts are in lower case. Each list of word stems begins with common European and Asian languages. Word stems
 * in other languages follow, grouped by script: other Latin, other European, Arabic and Hebrew, and other Asian and
 * African scripts.
 */

const anyOf = (...stems: string[]): RegExp => new RegExp(stems.join('|'), 'u')

/** Matches the text of a link that unsubscribes the reader from mail. */
export const UNSUBSCRIBE = anyOf(
  String.raw`unsubscri|opt[ -]?out|turn (?:these|this|them|it) off|stop following|(?:marketing|markkinointi)(?:luvat| permissions| consents?)|(?:mail|email|notification|subscription) (?:preferences?|settings)|manage (?:your )?preferences|abbestell|abmelden|abmeldung|austragen|keine mails mehr|désabonn|désinscri|darse de baja|(?<!\p{L})(?:baja|de baixa)(?!\p{L})|cancelar (?:la )?suscripción|cancelar (?:a )?(?:inscrição|subscrição)|deixar de receber|descadastr|annulla (?:l')?iscrizione|disiscri|cancella(?:ti)? (?:l')?iscrizione|^cancellati(?: (?:qui|da).{0,20})?$|uitschrijv|avsluta prenumeration|avregistrera|avprenumer|afmeld|frameld|avmeld|peruuta tilaus|lopeta tilaus|en halua näitä|wypisz|zrezygnuj|rezygnacj|odhlásit odběr|odhlásit se z|nechci už|odhlásiť|leiratkoz|nem kérek több|dezabon|nu mai doresc|κατάργηση εγγραφής|διαγραφή από|απεγγραφ|abonelikten|artık e-posta istem|listeden çık|больше не получать|відписа|більше не надсил|配信停止|配信を停止|購読解除|受信をやめ|退订|退訂|取消订阅|不再接收|수신 ?거부|구독 ?취소|그만 받기|إلغاء الاشتراك|لا أريد|הסר|لغو اشتراک|hủy đăng ký|berhenti berlangganan|ยกเลิกการ`,
  String.raw`kanselleer subskripsie|(?:date|dar|darme) de baxa|abunəlikdən|(?:cancel·?la|anul·?la)r? (?:la |a )?(?:meva |teva )?subscripci|(?:anular|cancelar|cancellar) (?:a |o |la )?(?:minha |sua |tu |su )?(?:subscri|inscri|assinatura|suscrip)|deixar de subscrever|zruši[tť] o(?:d|b)|dad-?danysgrif|ops[ig]+e? abonnement|abonnement beenden|malabon|desubscri|desuscr|(?:lõpeta|tühista) tellimus|harpidetza (?:kendu|utzi)|(?:eroa|poistu) (?:postitus|listalta)|peru uutiskirje|díliostáil|anular l['’]abon|otkaži\p{L}* pretplat|odjav|odnaroč|disabon|desabon|batal berlangganan|hætta í áskrift|afskrá|annulla l['’]iscrizione|cancella\p{L}* l['’]iscrizione|atsisakyti (?:pren|naujien)|prenumeratos|(?:atcelt|atteikties no) abon|berhenti melanggan|nyahlanggan|avslutte? abonnement|meld av|od ?subskryb|nie obserwuj|çabono|çregjistro|säg upp|üyelikten ayrıl|üyeliği sonlandır|ngừng theo dõi|huỷ đăng ký|ofbestell`,
  String.raw`отпис|адпіс|одјав|прекини праћење|отпиш|отказаться от (?:подписки|рассылки)|скасувати підписку|отмен\p{L}+ подписк|бас тарту|ապաբաժանորդ|გამოწერის გაუქმება|ביטול (?:מינוי|מנוי|רישום|הרשמה)|בטל את (?:המנוי|הרישום)|ان ?سبسکرائب|सदस्यता (?:छोड़|रद्द|समाप्त|त्याग|खारेज)|সদস্যতা ত্যাগ|ਗਾਹਕੀ ਰੱਦ|குழுவிலக|చందాను|അൺസബ്|വരിക്കാരനല്ലാതാ|সদস্যপত্র প্রত্যাহার|ಚಂದಾದಾರಿಕೆ ರದ್ದು|เลิกรับ|เลิกสมัคร|サブスクライブの解除|登録を(?:解除|取り消)|購読(?:を)?停止|通知を(?:解除|無効)|取消訂閱|停止訂閱|구독 ?해[지제]`,
)

/** Matches a word for a password. */
export const PASSWORD = anyOf(
  `password|pass ?wor[dt]|passwort|kennwort|mot de passe|contraseña|palavra-passe|senha|wachtwoord|lösenord|adgangskode|passord|salasan|hasł|hesl|jelsz|parol|κωδικού|συνθηματικ|şifre|парол|パスワード|密码|密碼|비밀번호|كلمة (?:ال)?(?:مرور|سر)|סיסמ|mật khẩu|kata sandi|รหัสผ่าน|पासवर्ड`,
  String.raw`wagwoord|wachtwurd|passwuert|paßwo+t|passwo+r[dt]|kodeord|lykilorð|salasõna|parool|slaptažod|fjalëkalim|lozin[kc]|zapork|gesl[oau](?!\p{L})|šifr[aeu]|contrasenya|contrasinal|(?:restablec|reinicia|cambia)\p{L}* (?:a |la |tu |su |o )?clave|nueva clave|clave nova|contrasigno|contresegno|pas[o]?vort|pasahitz|ger-tremen|nghyfrinair|cyfrinair|p(?:h)?asfhocal|focal faire|facal-faire|modpas|kódigo di akseso|şifrə|şîfre|kata laluan|(?:reset|kecap) (?:sandi|konci)|nenosiri|okwuntughe|paswọọdụ|kalmar (?:sirri|wucewa)|erayga(?:aga)? sirta|aṣínà|iphasiwedi|tenimiafina|kupuhipa`,
  String.raw`κωδικ\p{L}+ πρόσβασης|νέο\p{L}? κωδικό|лозинк|шифр[ауе]|серһүҙ|серсүз|сырсөз|сырдык сөз|құпия ?сөз|нууц үг|рамзи убур|գաղտնաբառ|პაროლ|ჩამოყრ|ჩამოსაყრ`,
  `كلم[ةه] (?:ال)?(?:مرور|سر)|رمز ?عبور|کلمه ?(?:ی )?(?:عبور|ورود)|گذرواژه|وشەی نهێنی|تێپەڕەوش|پټنوم|پاس ?ور[ډڊڈ]|پاس‌ور[ډڊڈ]|خفیہ لفظ|پارول`,
  `পাসও|পাছৱ|গুপ্তশব্দ|संकेतशब्द|परवलीचा शब्द|गोप्य शब्द|गुप्तशब्द|પાસવર્ડ|ગુપ્તસંજ્ઞા|ਪਾਸਵਰਡ|ਪਛਾਣ ਸ਼ਬਦ|ପାସ୍?ୱାର୍ଡ|கடவுச்சொல்|పాస్.?వర్డ్|సంకేతపద|రహస్యపద|ಪಾಸ್.?ವರ್ಡ್|ಗುಪ್ತಪದ|പാസ്.?വേഡ്|അടയാളവാക്ക്|രഹസ്യവാക്ക്|මුරපද|စကားဝှက်|ពាក្យសម្ងាត់|ລະຫັດຜ່ານ|የይለፍ ቃል|ፓስዎርድ|암호|패스워드`,
)

/** Matches words that mean to confirm an address or an account. */
export const VERIFY = anyOf(
  `verif|confirm|activat|validat|(?:complete|finish) (?:your |the )?(?:registration|sign(?:ing)?[- ]?up)|create your account by|bestätig|aktivier|aktifk|freischalt|vérifi|activer|valider|activar|ativar|conferma|attiva|bevestig|bekräft|aktivera|bekræft|aktivér|aktiver konto|aktiveer|aktiviraj|aktiver min|bekreft|vahvista|aktivoi|potwierd|aktywuj|zweryfik|aktivovat|aktiva[cč]|aktivujt|aktywac|ověřit|overiť|megerősít|aktivál|activeaz[ăa]|επιβεβα|ενεργοπο|επαλήθ|doğrula|onayla|etkinleştir|подтвер[жд]|активир|підтвер[жд]|активув|потвърд|(?:メール|アドレス|登録|本人|アカウント).{0,8}確認|認証|有効化|确认|驗證|验证|激活|확인|인증|활성화|تأكيد|تفعيل|تحقق|אימות|אשר|xác nhận|xác minh|ยืนยัน`,
  String.raw`(?<!\p{L})(?:valid(?:e[rzu]?|eer|a|i|ați|ar)|convalida)(?!\p{L})|überprüfen sie ihre e-?mail|tarkista sähköposti|(?:provjeri\p{L}*|preveri\p{L}*|kontrol\p{L}+) (?:\p{L}+ ){0,2}(?:e-?(?:mail|pošt)|ret)|potvrd|potrdi|patvirtin|apstiprin|kinnita|staðfest|stadfest|cunfirm|konfirm|kumpirma|patunayan|cadarnhau|gwiri|kadarnaat|baiezt|egiaztatu|berrets|berrespen|fíoraigh|deimhnigh|dearbhaich|befêstig|ferifi|erősítsd|igazol(?:ja|d)|(?<!\p{L})over(?:te|iť)|ověřte|təsdiq|tasdiqla|tassykla|verast|piştrast|(?:meng|di)?sahkan|tabbatar|thibitisha|xaqiiji|qinisekisa|mirkanee|ripoho|xác thực`,
  String.raw`(?<!\p{L})(?:kw?|w)?emeza(?!\p{L})|(?<!\p{L})[gc]adarnh(?:au|ewch)(?!\p{L})`,
  `επαληθ|επικυρώ|пацвер|потвър[дж]|потврд|верифик|активуј|раста(?:у|ңыз|ңиз)|ыраста|баталгаажуул|тасдиқ|раслагыз|հաստատ|ստուգեք ձեր|დაადასტურ|დადასტურ|გადამოწმ|перевірте (?:свій|свою|адрес|електрон)`,
  String.raw`أك[ِّ]{0,2}د|ت[اأ]یید|تصد[یي]ق|توثیق|پشتڕاست|دەلىللە|(?<!\p{L})ל?אמת(?!\p{L})|אישור (?:הרשמה|רישום|חשבון|כתובת)`,
  String.raw`যাচাই|নিশ্চিত|সত্যাপন|सत्याप|पुष्टि|पुष्टी|प्रमाणित|ચકાસ|પુષ્ટિ|ਪੁਸ਼ਟੀ|ਤਸਦੀਕ|ਪ੍ਰਮਾਣਿਤ|ଯାଞ୍ଚ|சரிபார்க்க|உறுதிப்படுத்த|ధృవీకరించ|నిర్[ధథ]ారించ|ಪರಿಶೀಲಿಸ|ದೃಢೀಕರ|പരിശോധിക്ക|സ്ഥിരീകരിക്ക|സാധൂകരിക്ക|තහවුරු|සත්.{0,2}යාපන|ස්ථිර|အတည်ပြု|ផ្ទៀង|បញ្ជាក់|ຢືນ.?ຢັນ|ตรวจสอบบัญชี|ያረጋግጡ|አረጋግጥ|検証|(?:購読|サブスク\p{L}{0,8}).{0,3}確認|確認(?:您的|訂閱|電子|帳號|信箱|註冊|郵)|帳號確認|구독 ?승인`,
)

/** Matches words for signing in. */
export const SIGN_IN = anyOf(
  String.raw`(?:sign|log)(?: me)?[ -]?(?:in|on)(?!\p{L})|(?:logging|signing) (?:you )?in(?!\p{L})|in te loggen|magic link|anmelden|login|connecter|connexion|accéder|iniciar sesión|acceder|ingresar|entrar|entra(?!\p{L})|acess|aceder|accedi|accesso|inlog|logga in|log ind|logg inn|öppna mitt konto|gå til min konto|kirjaud|siirry tilille|zaloguj|wejdź|przihl|přihlás|vstoupit|prihlás|bejelentkez|belép|lépj(?:en)? be|conectează|autentific|intră|σύνδεση|είσοδος|oturum aç|giriş|hesaba gir|войти|вход|перейти в|увійти|вхід|перейти до|ログイン|サインイン|登录|登入|登錄|进入|로그인|들어가기|الدخول|כניסה|התחבר|đăng nhập|masuk|เข้าสู่ระบบ`,
  String.raw`(?<!\p{L})(?:meld (?:\p{L}+ )?(?:aan|oan)|teken (?:aan|in)|oanmeld\p{L}*|ynlogg\p{L}*|melden sie sich|anmeldung|logg? på|logi sisse|sisse logi\p{L}*|sisene|skrá(?:ðu þig)? inn|innskrá\p{L}*|prisijung\p{L}*|ieiet|ielogo\p{L}*|pieraksti\p{L}*|pieteik\p{L}*|pieslēg\p{L}*|kyçu\p{L}*|hyr(?:je|ni)?|identifikohu|prijav\p{L}*|vpiši se|přihla\p{L}*|jelentkez\p{L}*|entreu|accés|inici\p{L}{0,2}(?: la| a| de)? sessió|inici\p{L}{0,2}(?: a| de)? (?:sessão|sesión)|conéct(?:ate|ese)|conect(?:e|are|ați|ar)(?:-\p{L}+)?|logare|connectez-vous|connectatz-vos|s['’]identifier|ensalut\p{L}*|hasi saioa|saioa hasi|sartu|kennaskañ|mewngofnod\p{L}*|logio i mewn|logáil isteach|log a-steach|daxil ol\p{L}*|têkeve|kirish|tizimga kirish|giriň|umellen|aloggen|ingia|shiga|ngena)(?!\p{L})`,
  String.raw`συνδεθ|увайсц|уваход|влез(?!\p{L})|влизане|вписване|войдите|авторизова|увійд|најав|логирај|пријав|уђи(?!\p{L})|кіру|кирүү|кириңиз|керү|нэвтрэх|ворид шудан|մուտք|შესვლა`,
  `تسجيل ?دخول|ورود|چوون[ەه]‌? ?ژوور|ننوتل|كىرىش|لاگ ?ان|سائن ان|היכנס|תתחבר`,
  `লগ ?ইন|সাইন ইন|ছাইন ইন|প্রবেশ|लॉग ?इन|लॉगिन|साइन ?इन|प्रवेश|સાઇન ઇન|લૉગ ?ઇન|ਲਾਗ ?ਇਨ|ਸਾਈਨ ?-? ?ਇਨ|ସାଇନ|உள்நுழை|புகுபதி|లాగిన్|సైన్ ఇన్|ప్రవేశ|ಲಾಗ್ ?ಇನ್|ಲಾಗಿನ್|ಸೈನ್ ಇನ್|ലോഗിൻ|സൈൻ ഇൻ|പ്രവേശിക്ക|පුරන|ඇතුල්|ලොගින්|ဝင်ရ|ចូល|ເຂົ້າ.?ສູ່|ลงชื่อเข้าใช้|เข้าระบบ|ይግቡ|登陆`,
)

const NOTICES = String.raw`(?:notifi\p{L}*|benachrichtigungs?|varslings?|meldings?|aviserings?|értesítési|ilmoitus|bildirim|e-?mail)[ -]?(?:instellingen|einstellungen|indstillinger|innstillinger|inställningar|asetuks\p{L}*|ayar\p{L}*|beállítás\p{L}*)`
const SETTINGS = String.raw`(?:configuració|tetapan|shocruithe|ajustes|paramètres|nastaven\p{L}+|ustawienia|impostazioni|configurações|definições|configuración|pengaturan|setări|postavke|nastavitve|настройки|налаштування|ρυθμίσεις|thiết lập|cài đặt) (?:\p{L}{1,5} ){0,2}(?:notific\p{L}*|notifik\p{L}*|oznámen\p{L}*|upozorn\p{L}*|powiadom\p{L}*|obavijest\p{L}*|obvestil\p{L}*|уведомлен\p{L}*|сповіщен\p{L}*|ειδοποι\p{L}*|thông báo|e-?mel|ríomhphoist|e-?mail\p{L}*)|הגדרות ה?התראות|تنظیمات اعلان|إعدادات الإشعارات`

/** Matches the name of a page with settings for received mail, such as `Notification settings`. */
export const NOTICE_SETTINGS = anyOf(NOTICES, SETTINGS)

/**
 * Recognises words beside a number that tell the number's meaning, in some fifty languages. The parts of a compound
 * word count as words, so `code` is found in `Bestätigungscode`. All given texts are in lower case.
 */

import { PASSWORD } from './links/linkStems.ts'

/**
 * Matches words that name something other than a one-time code. Longer expressions come first in the list, so that a
 * `promo code` does not count as a `code`.
 */
const OTHER = [
  // Words such as "promo", "gift" and "booking" show that a code is no sign-in code.
  String.raw`(?:gate|door|promo\p{L}*|discount|coupon|voucher|gift|referral|booking|reservation|zip|post(?:al)?|country|area|city|sort|swift|bank|branch|bar|qr|product|item|model|tax|dress|source|exit|error|status|reason|response|return|colou?r|hex|hs|building|currency|airport|icd|git|morse|unlock|course|class|team|meeting|conference|event|studio|http|result|debug|machine|legacy|tracking|tracing|trace|shipment|shipping|parcel|customer|client|member|employee|asset|serial|stock|vendor|supplier|campaign|affiliate|language|voucher|exception|alarm|alert|job|batch|department|your own)[ -]?(?:card[ -]?)?codes?`,
  String.raw`(?:buchungs|gutschein|rabatt|aktions|gutscheinkarten|fehler|länder|produkt|artikel|farb|bestell|steuer|quell|bar|strich|kortings|boekings|bokning|bokings|booking|rabat|värde|værdi|värdi|kupon|kupong|alennus|etu|varaus|kampanj\p{L}*|foglalási |kupon|post|sendungs|waren|kunden|lieferanten|fout|artikel|fejl|fel|vare|virhe|tuote|hiba|termék|vonal|čárový |termék)(?:codes?|kod\p{L}*|kode\p{L}*|kood\p{L}*|cod\p{L}*|kód\p{L}*)`,
  // A word before or after the word for "code" may name the kind of the code, such as a product code or an error code.
  String.raw`(?:商品|製品|品目|エラー|追跡|郵便|店舗|顧客|バー|クーポン)(?:コード|番号)|(?:商品|产品|產品|错误|錯誤|物流|邮政|追踪|条形)(?:代?码|代?碼|编码|編碼|代号)|(?:상품|제품|오류|에러|우편|고객|추적) ?(?:코드|번호)|(?:код\p{L}{0,2}|kod\p{L}{0,2}|kód\p{L}{0,2}|kôd\p{L}{0,2}) (?:товар|ошибк|продукт|артикул|грешк|помилк|клиент|отслежив|błęd|produkt|towar|klient|pošt|chyb|výrob|zbož|zákazn|tovar|napak|izdelk|strank|greš|proizvod|kupc|hib|termék)\p{L}*|(?:produkto|prekės|klaidos|preces|kļūdas|toote|vea|ürün|hata|müşteri|takip|posta) ?kod\p{L}*|(?:código|codi) d[eo]l? (?:error|sa[íi]da|salida|sortida|producto|artículo|producte|article|seguimiento|cliente|barras|produto|artigo|erro|rastre\p{L}+|região)|code (?:de |d['’])?(?:produit|article|erreur|client|suivi|barres?|magasin|couleur)|codice (?:del |di |a )?(?:prodotto|articolo|errore|cliente|fiscale|tracciamento|tracking|spedizione|barre)|(?:kode|mã) (?:produk|barang|kesalahan|galat|pos|pelanggan|resi|sản phẩm|lỗi|vận đơn|khách hàng|bưu)\p{L}*|รหัส(?:สินค้า|ไปรษณีย์|ข้อผิดพลาด|ลูกค้า|พัสดุ)|رمز (?:المنتج|الخطأ|التتبع|البريد|العميل)|קוד (?:מוצר|שגיאה|מעקב|לקוח)`,
  // Words for purchases, such as "order", show that a number is no sign-in code.
  String.raw`order(?! to)|purchase|bestell\p{L}*|auftrag\p{L}*|command[ei]s?|pedidos?|encomenda\p{L}*|compra|ordin[ei]|bestelling\p{L}*|ordre\p{L}*|tilau\p{L}*|ostok\p{L}*|zamówie\p{L}*|objednáv\p{L}*|rendelés\p{L}*|comand[aăi]\p{L}*|παραγγελ\p{L}*|sipariş\p{L}*|заказ\p{L}*|замовлен\p{L}*|注文\p{L}*|订单\p{L}?|訂單|주문\p{L}*|طلبي\p{L}*|الطلب|طلبك|beställn\p{L}*|bestilling\p{L}*|pöntun\p{L}*|поръчк\p{L}*|нарачк\p{L}*|поруџбин\p{L}*|narudžb\p{L}*|naručb\p{L}*|porudžbin\p{L}*|naročil\p{L}*|užsakym\p{L}*|pasūtījum\p{L}*|tellimus\p{L}*|porosi\p{L}*|тапсырыс\p{L}*|захиалг\p{L}*|buyurtma\p{L}*|sifariş\p{L}*|đơn (?:hàng|đặt)|pesanan|შეკვეთ\p{L}*|պատվեր\p{L}*|سفارش\p{L}*|آرڈر|מספר ה?הזמנה|ऑर्डर|अर्डर|অর্ডার|ஆர்டர்|สั่งซื้อ|ออเดอร์|ትዕዛዝ|ສັ່ງຊື້|ការបញ្ជាទិញ|အော်ဒါ`,
  // Words for parcels and places, such as "track", show that a number is no sign-in code.
  String.raw`track\p{L}*|parcel|package|shipment|waybill|sendung\p{L}*|paket\p{L}*|lieferung|suivi|colis|envoi|envío|guía|seguimiento|rastre\p{L}*|envio|spedizione|tracciamento|zending\p{L}*|kolli\p{L}*|försändelse|sporing\p{L}*|forsendelse|seuranta\p{L}*|lähetys\p{L}*|przesyłk\p{L}*|zásilk\p{L}*|csomag\p{L}*|küldemény\p{L}*|urmărire|expedier\p{L}*|αποστολ\p{L}*|takip|gönderi\p{L}*|kargo|трек\p{L}*|отправлен\p{L}*|посылк\p{L}*|відправлен\p{L}*|відстежен\p{L}*|посилк\p{L}*|追跡\p{L}*|伝票\p{L}*|运单\p{L}?|快递|運單|운송장|송장|التتبع|الشحنة`,
  String.raw`(?<!\p{L})zip(?!\p{L})|post(?:al)?code|postcode|postleitzahl|(?<!\p{L})plz(?!\p{L})|code postal|código postal|(?<!\p{L})c\.p\.|(?<!\p{L})cep(?!\p{L})|(?<!\p{L})cap(?!\p{L})|postnummer|postinumero|kod pocztowy|psč|irányítószám\p{L}*|cod(?:ul)? poștal|τ\.κ\.|posta kodu|индекс\p{L}*|індекс\p{L}*|郵便\p{L}*|邮编|邮政\p{L}*|우편\p{L}*|البريدي|(?<!mail[ -]?)adress\p{L}*(?! (?:e-?mail|mail|électronique|(?:de )?courriel|de messagerie))|street|straße|(?<!\p{L})room|gate|terminal|flight|seat`,
  // Words about money, such as "invoice", show that a number is no sign-in code.
  String.raw`invoice|statement|receipt|amount|total|balance|account (?:no|number)|iban|(?<!\p{L})bic(?!\p{L})|vat|rechnung\p{L}*|betrag|summe|kontonummer|facture|relevé|montant|factura|fatura|extrato|importe|valor|fattura|estratto|importo|factuur|afschrift|bedrag|faktur\p{L}*|kontoutdrag|belopp|kontoudtog|beløb|lasku\p{L}*|tiliote\p{L}*|summa|wyciąg\p{L}*|kwot\p{L}*|výpis\p{L}*|částk\p{L}*|számla\p{L}*|kivonat\p{L}*|összeg\p{L}*|extras\p{L}*|suma|τιμολόγι\p{L}*|ποσό|ekstre|tutar\p{L}*|счёт\p{L}*|счет\p{L}*|выписк\p{L}*|сумм\p{L}*|рахун\p{L}*|виписк\p{L}*|сум[аи]|請求書?|明細|金額|合計|发票|账单|实付|金额|청구서|명세서|금액|الفاتورة|كشف|المبلغ|card ending|ending (?:in|with)?|endet auf|last (?:four|4)|transaction|txn`,
  // Words for vouchers and journeys, such as "coupon", show that a number is no sign-in code.
  String.raw`promo\p{L}*(?: kod\p{L}*)?|(?:cadeau|kado|waarde)?boncode|coupon|voucher|discount|gutschein\p{L}*|rabat\p{L}*|réduction|descuento|cup[óõ][mn]|cupão|sconto|buono|korting\p{L}*|alennu\p{L}*|kuponk\p{L}*|kupon\p{L}*|kupón\p{L}*|zniżk\p{L}*|slev\p{L}*|poukaz\p{L}*|kuponkód\p{L}*|utalvány\p{L}*|reducere|εκπτωτικ\p{L}*|κουπόνι|промокод\p{L}*|купон\p{L}*|クーポン\p{L}*|割引\p{L}*|优惠\p{L}?|代金券|쿠폰\p{L}* ?(?:코드)?|할인\p{L}*|الخصم|قسيم\p{L}*|20 ?%`,
  String.raw`booking|reserv\p{L}*|buchung\p{L}*|réservation|localizador|prenotazione|boeking\p{L}*|bokning\p{L}*|varau\p{L}*|rezerw\p{L}*|rezerv\p{L}*|foglal\p{L}*|κράτησ\p{L}*|rezervasyon\p{L}*(?: kod\p{L}*)?|брон\p{L}*|予約\p{L}*|预[订约]\p{L}?|预约|예약|الحجز|e-?ticket|pnr`,
  // Words for cases and counted things, such as "ticket", show that a number is no sign-in code.
  String.raw`reference|merchant|händler\p{L}*|marchand|comerci\p{L}*|(?<!\p{L})ref(?!\p{L})|ticket|(?<!\p{L})case|request id|message id|envelope|contract|commit|(?<!\p{L})pr(?!\p{L})|issue|build|job|version|release|(?<!\p{L})port(?!\p{L})|line|(?<!\p{L})sku|(?<!\p{L})ean(?!\p{L})|serial|vorgang\p{L}*|anfrage|référence|dossier|demande|referencia|solicitud|(?<!\p{L})caso(?!\p{L})|solicitação|richiesta|verzoek|zaak|ärende\p{L}*|henvendelse|sagen|pyyntö\p{L}*|tapaus|zgłoszeni\p{L}*|spraw\p{L}*|požadav\p{L}*|případ\p{L}*|kérés\p{L}*|ügy\p{L}*|cererea?|cazul|αίτημ\p{L}*|υπόθεσ\p{L}*|taleb\p{L}*|kayd\p{L}*|обращени\p{L}*|заявк\p{L}*|звернен\p{L}*|問い合わせ|受付|工单|案件|문의|접수|الحالة|طلب الدعم`,
  String.raw`(?:confirmation|customer|member(?:ship)?|phone|card|policy|registration|vehicle) (?:number|no)|best[äa]tigungsnummer|kundennummer|numéro|número|numero(?! di)|(?<!\p{L})n[º°.]|nummer|číslo|(?<!\p{L})numer(?!\p{L})|număr\p{L}*|αριθμ\p{L}*|(?<!\p{L})αρ\.|numaral\p{L}*|numarası|номер\p{L}*|(?<![認証暗])番号|确认号|번호(?<!인증 ?번호)|رقم|számú|szám(?!\p{L})|number|(?<!\p{L})no\.`,
  // Words for people and their possessions, such as "customer", show that a number is no sign-in code.
  String.raw`(?:customer|client|member(?:ship)?|user|student|patient|employee|account|subscriber|passenger|traveller|guest|booking|order|ticket|case|device|session|request|transaction|workspace|team|project|store|shop|job|visit|claim|policy|meter|vehicle|loyalty)(?: id(?!\p{L})|[ -]?(?:key|ref)(?!\p{L})| ?#)|user ?names?|(?:account|user|profile) ?:|benutzername|kundenn\p{L}*|nom d['’]utilisateur|identifiant|usuari[oa]|nombre de usuario|nome utente|nome de (?:usuário|utilizador)|utilizador|gebruikersnaam|användarnamn|brugernavn|brukernavn|käyttäjä(?:nimi|tunnus)|nazwa użytkownika|uživatelské jméno|felhasználónév|nume de utilizator|όνομα χρήστη|kullanıcı adı|имя пользователя|логин|ім['’]я користувача|ユーザー名|会員|お客様|用户名|用戶名|会员|사용자|회원|اسم المستخدم|العضوية`,
  // A number beside a word for an account, a card or a list is no one-time code, because it stays the same for years.
  String.raw`(?:kunden|mitglieds|benutzer|bank)-?konto|(?:customer|client|member|bank|savings) accounts?|compte client|cuenta de cliente|conto cliente|conta de cliente|gift ?cards?|geschenkkarte|carte cadeau|tarjeta regalo|cadeaukaart|tan-?list\p{L}*|code ?list\p{L}*|leaked`,
  // Words for telephones, machines and times, such as "call", show that a number is no sign-in code.
  String.raw`(?<!\p{L})calls?(?!\p{L})|phone|(?<!\p{L})tel(?!\p{L})|dial|helpline|fax|rufen|telefon\p{L}*|melde dich|appelez|appel|llama\p{L}*|ligue|denuncie|denuncia|chiama\p{L}*|(?<!\p{L})bel(?!\p{L})|meld het|(?<!\p{L})ring(?!\p{L})|soita|zadzwoń|volejte|hívj\p{L}*|sună|sunați|καλέστε|arayın|звони\p{L}*|дзвоні\p{L}*|телефону\p{L}*|電話|连络|连絡|連絡|致电|拨打|전화|신고|اتصل|الهاتف|(?<!\p{L})ip(?!\p{L})|firefox|chrome|device`,
]

/** Matches words that certainly name a one-time code. */
const CERTAIN = [
  // Many Romance and Creole languages write `code of verification` nearly alike, as in `còdighe de verìfica`.
  String.raw`(?<!\p{L})c[oóòô]d\p{L}{0,4} d(?:[aeiouèéò]|el|al|ul)? ?['’]?(?:v[eéèê]r[iìíî]f|[ck][ou]nf[ieé]rm|au[td]ent)\p{L}*|(?<!\p{L})k[oòôó]d(?: [aà] ou| w)? (?:v[eéè]rif|konfim|koneks|aks[eè]|sekirit)\p{L}*`,
  String.raw`wiederherstellungs(?:code|schlüssel)|code de (?:récupération|secours|réinitialisation)|código de (?:recuperación|recuperação|restablecimiento|redefinição)|codice di (?:recupero|ripristino|reimpostazione)|herstel(?:code|sleutel)|återställningskod\p{L}*|(?:gendannelses|nulstillings|gjenopprettings|tilbakestillings)kode\p{L}*|palautuskoodi\p{L}*|kod\p{L}* (?:odzyskiwania|resetowania)|kód\p{L}* (?:pro obnov|na obnov)\p{L}*|helyreállítási kód\p{L}*|cod\p{L}* de (?:recuperare|resetare)|κωδικ\p{L}+ (?:ανάκτησης|επαναφοράς)|kurtarma kodu\p{L}*|sıfırlama kodu\p{L}*|код\p{L}{0,3} (?:восстановлен|сброса|відновлен|скидан|аднаўлен|възстановяв)\p{L}*|(?:復旧|回復|リカバリー|リセット)コード|(?:恢复|恢復|重置)(?:代?码|代?碼)|(?:복구|재설정) ?코드|رمز (?:ال)?(?:استرداد|استعادة|إعادة)|קוד (?:שחזור|איפוס)|mã khôi phục|kode pemulihan|รหัส(?:ยืนยัน|กู้คืน|ลับ|ใช้ครั้งเดียว|แบบใช้ครั้งเดียว)|kirjautumis(?:koodi|tunniste)\p{L}*|kirjautumisen tunniste\p{L}*`,
  `klju[cč] za (?:promjenu|promenu|reset|obnov|potvrd|aktiv)|(?:kontrol|konfirm|sekur|ensalut)kod|kodigo sa pag|(?:激活|启用|啟用)(?:码|碼)|(?:trygdar|eingangs|váttanar)kot`,
  String.raw`namba(?:ri)? (?:yako )?ya (?:uthibitish(?:o|aji)|siri)|(?:engangs|engångs|eenslag)-?(?:pass|lösen|wag)\p{L}*|ühekordne parool|ühekordse parooli|vienkartin\p{L}+ slaptažod\p{L}*|vienreizēj\p{L}+ parol\p{L}*|(?:enkratn|jednokratn)\p{L}+ (?:gesl|lozink|kôd)\p{L}*|jednorazov\p{L}* hesl\p{L}*|(?:kata sandi|kata laluan|sandi) (?:sekali|satu kali)\p{L}*|parol[aăe] unică|εφάπαξ κωδικ\p{L}*|codi (?:de |d['’])(?:verificació|confirmació|autenticació|accés|seguretat|recuperació|un sol ús)|cód (?:fíordheimhnithe|deimhnithe|aisghabhála|slándála)|kodiċi ta['’] (?:awtentikazzjoni|verifika|konferma)|认证码|認證碼|一次性密碼|일회성 암호|एक[- ](?:बार|समय)(?: का|को) पासवर्ड|erabilera-bakarreko|eenslagwoord\p{L}*|engangs passord|wachtwoord voor eenmalig|password (?:unica|a tempo unico)|contraseña de (?:un solo|una sola) \p{L}+|šifra za (?:autent|potvrd|prijav|provjer)\p{L}*|pasfhocal aon uair`,
  String.raw`birdəfəlik (?:şifrə|parol|kod)\p{L}*|ერთჯერად\p{L}* (?:პაროლ|კოდ)\p{L}*|mật khẩu (?:dùng )?một lần|အတည်ပြုနံပါတ်|वन[- ]टाइम पासवर्ड|(?:váttanar|góðkenningar)kot\p{L}*|duođaštankod\p{L}*|helu h[oō][ʻ'’]?oia`,
  String.raw`যাচাইকরণ কোড|পাসকোড|ওটিপি|சரிபார்ப்புக் ?குறியீடு|ధృవీకరణ కోడ్|ચકાસણી કોડ|ಪರಿಶೀಲನಾ ಕೋಡ್|സ്ഥിരീകരണ കോഡ്|تصدیقی کوڈ|លេខកូដ(?:ផ្ទៀងផ្ទាត់|អញ្ជើញ|បញ្ជាក់)|ລະຫັດຢືນຢັນ|အတည်ပြုကုဒ်|(?:დადასტურების|ვერიფიკაციის|ერთჯერადი) კოდი\p{L}*|հաստատման կոդ\p{L}*|t[əa]sdiq(?:lash)? kod\p{L}*|(?:patvirtinimo|vienkartin\p{L}+) kod\p{L}*|(?:apstiprinājuma|verifikācijas|vienreizēj\p{L}+) kod\p{L}*|(?:kinnitus|turva|ühekordne )\p{L}*kood\p{L}*|staðfestingar(?:kóð|númer)\p{L}*|kodi? (?:i )?verifikimit|(?:potvrdni|verifikacijski|jednokratni|kontrolni) k[oô]d\p{L}*|(?:potrditvena|enkratna) koda|koda za potrditev|(?:код за (?:потврда|верификација)|једнократни код|еднократен код)\p{L}*|tastıqlaw kodı|растау коды|msimbo (?:wako )?wa uthibitisho`,
  String.raw`(?:verification|confirmation|security|access|auth(?:entication|orization)?|activation|login|log[- ]in|sign[- ]?in|sign[- ]?up|temporary|one[- ]?time|single[- ]use|2fa|mfa|two[- ]factor|two[- ]step|device|recovery|reset|email|identity)[ -](?:pass)?(?:codes?|pin|password|key|token)|pass ?code|one-time(?! (?:discount|coupon|promo|offer|voucher))|(?<!\p{L})(?:otp|pin|one[- ]time|verification) numbers?(?!\p{L})|(?:dynamic|transaction) (?:password|pin)|(?<!\p{L})otp(?!\p{L})|2fa|magic code`,
  String.raw`(?:bestätigungs|sicherheits|verifizierungs|zugangs|anmelde|einmal|freischalt|aktivierungs|authentifizierungs|prüf|login-?)(?:code|kennwort|passwort|pin)|einmal\p{L}*|(?<!\p{L})m?tan(?!\p{L})`,
  `code (?:de |d['’])(?:vérification|confirmation|sécurité|connexion|validation|accès|activation|authentification)|usage unique|numéro de vérification|code temporaire`,
  `(?:código|clave) (?:de )?(?:verificación|confirmación|seguridad|acceso|un solo uso|activación)|un solo uso|(?:código|senha) (?:de )?(?:verificação|confirmação|segurança|acesso|uso único|ativação)|uso único|n[uú]mero de verifica(?:ción|ção)|codi de verificació`,
  `codice (?:di )?(?:verifica|conferma|sicurezza|accesso|attivazione|monouso|temporaneo)|monouso|(?:verificatie|bevestigings|beveiligings|inlog|toegangs|activerings)code|eenmalige?`,
  String.raw`(?:verifierings|bekräftelse|säkerhets|inloggnings|engångs|verifikations|bekræftelses|sikkerheds|login|adgangs|engangs|bekreftelses|sikkerhets)-?kod\p{L}*|(?:vahvistus|turva|kertakäyttö|todennus|kirjautumis)\p{L}*koodi\p{L}*|kertakäyttö\p{L}*`,
  String.raw`kod\p{L}* (?:weryfikacyjn|potwierdz|bezpieczeń|dostęp|jednoraz|logowani)\p{L}*|jednoraz\p{L}*|(?:ověřovac|potvrzovac|bezpečnostn|jednorázov|prihlasovac|overovac)\p{L}*|(?:ellenőrző|megerősítő|biztonsági|belépési|hitelesítő|egyszeri) ?kód\p{L}*|egyszer használatos|cod(?:ul)?(?: tău)? (?:de )?(?:verificare|confirmare|securitate|acces|unică)|unică folosință|kod za potvrdu|kontroln\p{L}+ kod`,
  String.raw`κωδικ\p{L}+ (?:επαλήθευσ|επιβεβαίωσ|ασφαλ|μίας|μιας|πρόσβασης otp)\p{L}*|μ[ιί]ας χρήσης|(?:doğrulama|onay|güvenlik|giriş|aktivasyon) kod\p{L}*|tek kullanımlık|код\p{L}* (?:подтвержд|безопасн|доступ|проверк|активац|верификац|підтвердж|безпек|перевірк)\p{L}*|одноразов\p{L}*|(?<!\p{L})пин(?!\p{L})|еднократ\p{L}*|код за (?:потвърждение|активиране|вход|достъп|проверка|регистрация)|(?:верификац(?:ион|иск)|потврдн|сигурносн|безбедносн|приступн|активацион)\p{L}{1,2} код\p{L}{0,3}|код\p{L}{0,3} за (?:верификац|потврд|пријав|најав|приступ|безбедн)\p{L}*`,
  String.raw`(?:確認|認証|検証|ログイン|セキュリティ|ワンタイム)(?:用)?(?:コード|パスワード|番号|キー)(?<!確認番号)|ワンタイム|验证码|驗證碼|校验码|校驗碼|授权码|授權碼|识别码|識別碼|邀请码|邀請碼|注册码|註冊碼|pin码|pin碼|动态密码|動態密碼|动态口令|動態口令|动态码|一次性(?:密码|密碼|代码)|安全码|安全碼|确认码|確認碼|登录码|인증 ?(?:코드|번호)|pin ?번호|확인 코드|보안 코드|일회용\p{L}*|otp`,
  String.raw`(?:رمز|رقم) (?:التحقق|التأكيد|الأمان|الدخول|التفعيل|المؤقت)|الرمز المؤقت|لمرة واحدة|קוד (?:ה?אימות|ה?אישור|ה?כניסה|ה?אבטחה|זיהוי)|חד.?פעמי|کد تأیید|کد تایید|کد احراز ?هویت|او ٹی پی|رمز یکبار|mã (?:xác|otp)\p{L}*|kode (?:verifikasi|konfirmasi|keamanan|otp)|รหัส(?:ยืนยัน|otp)|ओटीपी|सत्यापन कोड`,
  // The pattern matches a word for "code" directly before the purpose of the code, as in `code to sign in` and `код для
  // входа`.
  String.raw`(?:codes?|pin|kod\p{L}{0,4}|código|codice|cod(?:ul)?|kód\p{L}{0,3}|koodi|код\p{L}{0,2}|κωδικ\p{L}{1,3}) (?:to|for|zum|zur|für|pour|para|de|per|do|k|na|för|til|att|pentru|για|για τη|για την|для|за|voor|om)(?: (?:the|your|die|das|la|el|le|l['’]|o|a|tu|su|uw|je|din|te|τη|την))? ?(?:sign|log|anmeld|einlogg|connex|connect|iniciar|accede|entrar|accesso|logow|zalog|přihl|prihl|inlog|logga|belép|bejelent|autent|autoriz|authori|confirm|verif|bestätig|bekräft|bevestig|potwierd|potvrz|вход|войти|вхід|увійти|подтвержд|підтвердж|είσοδο|σύνδεσ)\p{L}*|varmennus\p{L}*|varmenne\p{L}*`,
]

/** Matches words for a code of some kind, or for a password. */
const CODE = [
  // Some mails ask for characters instead of a code, as in `Copy the following characters`. These words count as words
  // for a code.
  'following characters|folgenden? zeichen|caractères suivants|caracteres siguientes|siguientes caracteres|seguintes caracteres|seguenti caratteri|volgende tekens|följande tecken|følgende tegn|seuraavat merkit|następujące znaki|následující znaky|nasledujúce znaky|sljedeće znakove|naslednje znake|alábbi karakter|următoarele caractere|следующие символы|наступні символи|şu karakter|次の文字|以下字符|다음 문자',
  String.raw`(?<!\p{L})codi(?!\p{L})|codiç|waehere|קאָ?ד|códigu|isissutiss\p{L}*|ch?òd[eih]?\p{L}*|(?<!\p{L})(?:g?c|ch)ód(?!\p{L})|kodiċi|koade|autentikigkod\p{L}*|kôd\p{L}*|kodi(?:ni|ngiz\p{L}*)|kodeu|kodhi|kaody|(?<!\p{L})(?:ama|i|li)?khodi|ikhowudi|kóòdù|lambar (?:tabbatar|tantance|tabbaci)\p{L}*|κώδικ\p{L}*|рамзи|ኮድ|କୋଡ|(?<!\p{L})c?hòd\p{L}*|c['’]hod|کوډ|ڪوڊ|کۆد\p{L}*|ক['’]ড|குறியீட்|קאָד|(?<!\p{L})côd|(?<!\p{L})kodo(?:n|j|jn)?(?!\p{L})|(?<!\p{L})kode(?:a|ak|arekin)(?!\p{L})|(?<!\p{L})kòd|(?<!\p{L})kodą|(?<!\p{L})[הלב]קוד|(?<!\p{L})(?:ال)?كود|(?<!\p{L})код(?:у|ы|ты|ыңыз|уңуз|іңіз)\p{L}{0,3}(?!\p{L})|কোড|குறியீடு|కోడ్|કોડ|ಕೋಡ್|കോഡ്|ਕੋਡ|کوڈ|කේතය|កូដ|ລະຫັດ|ကုဒ်|კოდი|կոդ|(?<!\p{L})koodi?(?!\p{L})|(?<!\p{L})kod(?:as|ą|o|s|i|in|in[ıi]z)(?!\p{L})|kóð[ia]|(?<!\p{L})koda(?!\p{L})|msimbo|(?<!\p{L})(?:digits?|figures|ziffern|chiffres|cifr[ae]s?|dígitos?|cijfers|siffror\p{L}*|cifre|cyfr\p{L}*|číslic\p{L}*|számjegy\p{L}*|cifrele|ψηφί\p{L}*|rakam\p{L}*|цифр\p{L}*|ciąg\p{L}* znaków|ciąg)(?!\p{L})|数字|數字|숫자|أرقام|codes?(?!\p{L}| of )|(?<!\p{L})pin(?:-?code)?(?!\p{L})|token|códigos?|codi(?:ce|ci)|(?<!\p{L})cod(?:ul|ului)?(?!\p{L})|clave|senha|kod(?:en|er|et|e|em|u|y|ed|unuz\p{L}*|un|lar|uyla|unu)?(?!\p{L})|kood\p{L}*|kód\p{L}*|jelsz\p{L}*|(?<!\p{L})hasł\p{L}*|(?<!\p{L})hesl\p{L}*|κωδικ\p{L}*|şifre\p{L}*|код\p{L}{0,3}(?!\p{L})|парол\p{L}*|コード|暗証番号|代码|代碼|密码|密碼|비밀번호|코드|رمز|الرمز|كلمة|(?<!\p{L})קוד|(?<!\p{L})کد|(?<!\p{L})mã(?!\p{L})|รหัส|कोड`,
]

/** Matches words for access, which may occur beside a bare number, as in `Use 482913 to log in`. */
const ACCESS = [
  String.raw`(?:re)?set(?: up)?(?: your)?(?: \p{L}+)? password|reset|verify|confirm|complete|continue|finish|authori[sz]e|approve|recover|restore|activate|(?<!re)pair|zurücksetzen|zurückzusetzen|bestätigen|verifizieren|réinitialiser|confirmer|vérifier|valider|restablecer|confirmar|verificar|redefinir|repor|reimpostare|confermare|verificare|resetten|bevestigen|återställa|bekräfta|nulstille|bekræfte|vahvista\p{L}*|zresetować|potwierdzić|obnovit|potvrdit|ověřit|visszaállít\p{L}*|megerősít\p{L}*|reseta|confirma|επαναφέρ\p{L}*|επιβεβαι\p{L}*|sıfırla\p{L}*|doğrula\p{L}*|onayla\p{L}*|сбросить|подтвердить|скинути|підтвердити|リセット|確認|重置|确认|验证|재설정|확인|لإعادة|لتأكيد|log ?(?:me )?in|sign ?in|logging in|signing in|your account|loggst|einloggen|anmelden|anzumelden|connecter|connexion|accéder|compte|entrar|acceder|acesse|acessar|aceder|cuenta|conta|accedere|entrare|account|inlog\p{L}*|inloggen|toegang|logga in|konto\p{L}*|log ind|logge|adgang|tili\p{L}*|kirjau\p{L}*|zalog\p{L}*|wejść|przihlá\p{L}*|přihlá\p{L}*|vstoup\p{L}*|účt\p{L}*|lépj|belép\p{L}*|bejelentkez\p{L}*|fiók\p{L}*|conecta\p{L}*|cont(?:ul)?(?!\p{L})|συνδε\p{L}*|μπείτε|λογαριασμ\p{L}*|girmek|oturum|hesab\p{L}*|войти|зайти|аккаунт\p{L}*|увійти|зайти|кабінет\p{L}*|ログイン|サインイン|登录|登入|账号|계속|로그인|للدخول|الدخول|حساب\p{L}*`,
]

/** Matches verbs that tell the reader to enter a code. */
const USE =
  /(?<!\p{L})(?:teipiwch|rhowch|defnyddiwch|entajpu|uzu|הזינו|הזיני|הקלד|idatzi|erabili|sartu|إدخاله|إدخال|ادخل|antre|itilize|жазыңыз|киргизиңиз|колдонуңуз|suveskite|লিখুন|দিন|ব্যবহার|உள்ளிடவும்|నమోదు|ઉપયોગ|ದಾಖಲಿಸಿ|നൽകുക|درج|وارد|استفاده|បញ្ចូល|ປ້ອນ|ထည့်|შეი?ყვან\p{L}*|გამოიყენეთ|մուտքագրեք|օգտագործեք|daxil|istifadə|įveskite|naudokite|ievadiet|izmantojiet|sisesta\p{L}*|kasuta\p{L}*|sláðu|notaðu|vendosni|përdorni|unesite|koristite|vnesite|uporabite|внесете|въведете|користете|енгізіңіз|weka|tumia|use|using|enters?|typ(?:es?|ing)|key in|pop|punch in|dial in|fill in|eintipp\p{L}*|escrib\p{L}*|rellen\p{L}*|utili[sz]\p{L}*|tippe\p{L}*|trage|eingeben|tape[zr]|renseigne\p{L}*|introduz\p{L}*|escriba|escribe|teclee|escreva|scrivend[oe]\p{L}*|digit\p{L}*|coloque|(?<!(?<!\p{L})(?:o|el|un|este|novo|nuevo|seu|su) )informe|insira|digit[ai]\p{L}*|inserire|scrivi|vul|voer|toets|tast\p{L}*|mata in|fyll|skriv\p{L}*|syötä|näppäil\p{L}*|anna|podaj|wpis\p{L}*|przepis\p{L}*|vyplňte|opište|napište|gépelje|adja meg|tastați|scrieți|γράψτε|εισ[αά]γ\p{L}*|yazın|tuşlayın|girin\p{L}*|наберите|укажите|вкажіть|впишіть|masukkan|gunakan|nhập|กรอก|दर्ज|הזן|הקלידו|paste|input|with|mit|nutze|gib|geben|verwende\p{L}*|utilise\p{L}*|saisi\p{L}*|entre[zr]|usa|use|usar|introduce|introduzca|ingres\p{L}*|digite|insira|inserisci|gebruik|voer|använd|ange|brug|indtast|bruk|skriv|käytä|koodilla|kirjoita|użyj|wpisz|pomocí|použij\p{L}*|zadejte|zadaj\p{L}*|írja|írd|lépj|használ\p{L}*|folosi\p{L}*|introdu\p{L}*|χρησιμοποι\p{L}*|πληκτρολ\p{L}*|kullan\p{L}*|girin|gir|использу\p{L}*|введи\p{L}*|введіть|скориста\p{L}*|استخدم|أدخل)(?!\p{L})|入力|输入|輸入|填写|填入|使用|입력/u

const part = (name: string, words: readonly string[]) => `(?<${name}>${words.join('|')})`

/**
 * Matches words in mails of shops and travel companies. Such mails contain discount and booking codes that look like
 * one-time codes.
 */
const TRADE =
  /\d ?%|% ?\d|(?<!\p{L})off(?!\p{L})|checkout|at the till|save|shop now|discount|voucher|coupon|promo|gift|cadeau|kado(?=bon)|waardebon|boncode|presentkort|gavekort|lahjakort|rabat|gutschein|réduction|remise|descuento|desconto|cup[oóõã]|sconto|buono|korting|alennu|zniżk|slev|poukaz|kedvezmény|utalvány|reducere|έκπτωση|εκπτωτ|κουπόνι|indirim|kupon|скидк|знижк|промокод|купон|クーポン|割引|优惠|立减|代金券|할인|쿠폰|خصم|قسيم|reserv|booking|check-?in(?!\p{L})|itinerary|flight|hotel|buchung|réserv|reserva|prenotaz|boeking|bokning|varau|rezerw|rezerv|foglal|κράτησ|брон|予約|预订|预约|예약|حجز/u

/**
 * Tells whether a text is about the code for a call, a network or a door. This code is no one-time code, because all
 * guests use the same code.
 */
export const namesMeeting = (text: string): boolean =>
  /(?:meeting|webinar|conference|dial)[ -]?(?:id|in|link)|(?:your|tu|su|sua|votre|tua|ihr\p{L}{0,2}|dein\p{L}{0,2}) (?:suite|room|apartment|apartamento|habitación|quarto|chambre|appartement|camera|appartamento|zimmer|wohnung)(?!\p{L})|webinar|zoom|wi-?fi|wlan|(?<!\p{L})(?:guests?|locker|parking|besprechung|konferenz|einwahl|réunion|reunión|reunião|riunione|vergadering|møde|møte|mötet?|kokous|toplantı)(?!\p{L})|spotkani|schůzk|értekezlet|ședinț|σύσκεψ|совещани|встреч|зустріч|会議|会议|會議|회의|اجتماع/u.test(
    text.toLowerCase(),
  )

/**
 * Tells whether a line names a company, as the footer of a mail often does. The numbers in such a line are register,
 * house or telephone numbers.
 */
export const namesCompany = (line: string): boolean =>
  /©|\(c\) \d{4}|all rights reserved|(?<!\p{L})(?:inc|llc|ltd|limited|gmbh|plc|corp|pty|s\.r\.l|s\.p\.a|b\.v|sp\. z o\.o|s\.r\.o|kft|oyj?|aps|a\/s|sarl|hrb|siret)(?!\p{L})|株式会社|有限公司|주식회사/u.test(
    line.toLowerCase(),
  )

/** Tells whether a text is about a purchase or a journey. */
export const namesTrade = (text: string): boolean => TRADE.test(text.toLowerCase())

/**
 * Matches the stems of words for the purposes of one-time codes: sign-in, confirmation, registration, access, payment
 * approval, doors and devices. The stems are short, because one stem serves many languages. A stem does not tell that a
 * number beside it is a code; only a label (such as "code") does.
 */
const PURPOSE =
  /auth|autent|autor|identi|verif|valid|a[ck]t[iy]v|[ck]onfirm|bestätig|bekr[æeä]|bevestig|vahvist|potvr|potwierdz|megerős|registr|rejestr|enrol|inscri|einschreib|(?<!de|as)sign|log[ -]?[io]n|logg|anmeld|connect|conn?exi|acc[eè]s|acced|zugang|zugriff|toegang|adgang|(?<![bc])lock|entsperr|deblo|backup|recover|reset|restabl|réinit|zurücksetz|ponastav|obnov|восстан|віднов|сброс|återst|nulstil|tilbakest|palaut|sıfırla|重置|重設|재설정|リセット|再設定|gesl|lozink|hesl|hasł|jelsz|wachtwoord|lösenord|passord|salasan|slaptaž|şifre|المرور|סיסמ|mật khẩu|sandi|รหัสผ่าน|otp|2fa|mfa|passw|passk|contrase|senha|mot de passe|parol|secur|segur|sicher|säkerh|sikker|bezpe|bezpi|(?<!re)pair|device|gerät|appareil|dispositiv|freigabe|freischalt|approv|door|(?<!c)enter|entrance|eingang|abhol|pick[ -]?up|account|konto|compte|cuenta|conta(?![ci])|hesap|fiók|účet|účt|račun|вход|войти|вхід|увійти|подтвер|підтвер|потвърж|потврд|регистр|реєстр|автори|актив|доступ|парол|безопас|безпек|аккаунт|кабинет|кабінет|συνδ|επιβεβ|επαλήθ|λογαριασμ|είσοδ|ασφαλ|doğrula|onay|giriş|kayıt|güvenlik|認証|確認|ログイン|サインイン|登録|本人|パスワード|验证|驗證|确认|登录|登錄|登入|注册|註冊|密码|密碼|安全|账号|帳號|인증|확인|로그인|가입|비밀번호|보안|계정|تحقق|تأكيد|دخول|تسجيل|حساب|أمان|تفعيل|אימות|אישור|כניסה|אבטחה|חשבון|הרשמה|تأیید|ورود|ยืนยัน|เข้าสู่|ลงทะเบียน|บัญชี|xác|đăng|tài khoản|masuk|daftar|akun|सत्याप|लॉग|साइन|खाता|যাচাই|লগ|சரிபார்|உள்நுழை|உறுதி|ధృవీ|లాగ్|ચકાસ|ಪರಿಶೀಲ|പരിശോധ|تصدیق|لاگ|ផ្ទៀង|ຢືນຢັນ|အတည်|დადასტურ|შესვლ|հաստատ|մուտք|təsdiq|patvirtin|prisijung|apstiprin|pieslēg|kinnit|sisse ?log|staðfest|innskrá|растау|кіру|ырастоо|кирүү|баталгаажуул|нэвтр|thibitisha|ingia|qinisekis|ngena|fadhal/u

/** Tells whether a text names a purpose of one-time codes, such as a sign-in. */
export function namesPurpose(text: string): boolean {
  const lower = text.toLowerCase()
  return PURPOSE.test(lower) || PASSWORD.test(lower)
}

/**
 * Finds all labels (words that name a number) in one pass over a text. If several groups of label words match at one
 * position, the first group wins. Of two labels that overlap, the label with the earlier start wins.
 */
const LABEL = new RegExp(
  [part('other', OTHER), part('certain', CERTAIN), part('code', CODE), part('access', ACCESS)].join(
    '|',
  ),
  'gu',
)

const CODE_NAME = new RegExp([...CERTAIN, ...CODE].join('|'), 'u')

/** Tells whether a text contains a word for a code. The function takes a fraction of the time of {@link labelsOf}. */
export const namesCode = (text: string): boolean => CODE_NAME.test(text.toLowerCase())

export type LabelKind = 'other' | 'certain' | 'code' | 'access'
export type Label = { kind: LabelKind; start: number; end: number }

/**
 * Matches words for a verification, a confirmation, security, access, a sign-in, an activation, or a single use. A word
 * for a code beside such a word certainly names a one-time code, as in `kod pengesahan` and `egiaztapen kodea`.
 */
const PURPOSE_BESIDE = new RegExp(
  [
    `pengesahan|keselamatan|akses|log masuk|sekali guna|set semula|auten?tikasi|masuk|sekali pakai|aktivasi|veri[fv]i[ck]|verifizier|verifiser|[bv]er?i[fv]i[kc]a|confirm|konfirm|bezbednos|sigurnos|pristup|prijav|aktiva[ct]i|varnost|dostop|enkratn|preverj|potrdit|overit|overen|ověř|potvr|bezpečn|přístup|prístup|jedn[oó]ra[zs]|aktivač|přihl|prihl|aktywac|uwierzyteln|autoryzac|saug(?:os|umo)|prieig|prisijung|aktyvin|patvirtin|drošīb|piekļuv|pies?lēg|aktivizāc|apstiprin`,
    `juurdepääsu|sisselogimis|aktiveerimis|kontroll|ühekord|pääsy|aktivoin|varmistus|åtkomst|aktivering|autentiserings|tilgang|innlogging|pålogging|godkendelse|öryggis|aðgang|einnota|innskráning|virkjunar|váttan|trygdar|eingangs|eenmalig|controle|activati|ferifika|befêstig|bevestig|feiligens|sekuriteits|toegangs|aanmeld|ynloch|ynlog|bestätegung|sécherheets|alogg|inicio de sesión|início de sessão|inici de sessió|seguridade|dun só uso|activaci|seguret|acc[eè]s|segures|activare|conectare`,
    `hozzáférés|egyszer|aktivál|bejelentkezés|egiazta|berrespen|baieztap|segurtasun|sarbide|aktibazio|bakarreko|gwiriañ|surentez|kadarnaat|dilysu|cadarnhau|diogelwch|gwirio|mynediad|fíoraithe|deimhnithe|rochtana|slándála|aon uaire|dearbhaidh|tèarainteachd|inntrigidh|sigurtà|konfirmim|sigurisë|qasje|hyrje|erişim|tek kullan|təhlükəsizlik|təsdiq|aktivasiya|xavfsizlik|kirish|bir martalik|tasdiq|tassyk|barlag|piştrast|ewlehî|ewlehiy|têketin`,
    `uthibitish|usalama|xaqiij|amniga|tabbatar|tantance|ìjẹ́rìí|ìfìdímú|nkwenye|qinisekisa|ukuphepha|yokuphepha|pagpapatunay|pagpapatotoo|verifikasyon|konfimasyon|sekirite`,
    `спраўдж|пацвярдж|бяспек|аднаразов|праверк|верыфікац|актывац|аўтэнтыф|верифікац|автентиф|проверочн|аутентиф|авторизац|сигурност|безбедн|пристап|активир|потврд|потвржд|растау|қауіпсіздік|кіру|бір реттік|тексеру|белсендір|ырастоо|текшерүү|коопсуздук|кирүү|бир жолку|тасди[қк]|раслау|тикшер|баталгаажуул|нэвтрэх|аюулгүй|нэг удаагийн|амният|якдафъ`,
    `σύνδεσ|ενεργοπ|πρόσβασ|επαλήθευσ|επιβεβαίωσ|უსაფრთხ|შესვლის|აქტივაციის|დადასტურ|ვერიფიკაც|ერთჯერად|անվտանգ|մուտք|մեկանգամյա|ստուգ|ակտիվաց|հաստատ`,
    `גישה|הפעלה|אימות|אבטחה|التحقق|الوصول|المصادقة|الدخول|التفعيل|امنیت|دسترسی|ورود|فعال|تأیید|تایید|توثیق|تصدیق|سیکیورٹی|رسائی|ایک بار|لاگ ان|ننوتلو|دڵنیا|پشتڕاست|چوونەژوور|دەلىللە|جەزملە`,
    `पुष्टि|पुष्टी|सुरक्षा|एक्सेस|लॉगिन|वेरिफि|सत्याप|पडताळ|प्रमाणीकरण|रुजु|নিশ্চিত|নিরাপত্তা|ভেরিফি|রিসেট|লগইন|যাচাই|সত্যাপন|પુષ્ટિ|સુરક્ષા|ચકાસ|ਪੁਸ਼ਟੀ|ਤਸਦੀਕ|ਸੁਰੱਖਿਆ|ଯାଞ୍ଚ|ସତ୍ୟାପନ|சரிபார்|உறுதிப்படுத்|பாதுகாப்பு|నిర్ధారణ|భద్రతా|ధృవీ|ಪರಿಶೀಲ|ದೃಢೀ|ಭದ್ರತಾ|പരിശോധ|സുരക്ഷ|സ്ഥിരീ|සත්‍යාපන|සත්යාපන|තහවුරු|ආරක්ෂක`,
    `ความปลอดภัย|ครั้งเดียว|เข้าสู่ระบบ|เปิดใช้งาน|ตรวจสอบ|ยืนยัน|ຄວາມປອດໄພ|ຢືນຢັນ|ផ្ទៀងផ្ទាត់|សុវត្ថិភាព|បញ្ជាក់|အတည်ပြု|လုံခြုံရေး|bảo mật|đăng nhập|kích hoạt|dùng một lần|truy cập|xác (?:minh|nhận|thực)|የማረጋገጫ|የደህንነት|アクセス|일회용|로그인|검증`,
  ].join('|'),
  'u',
)

/** Matches at most two words directly before a label, or directly after a label. */
const WORDS_BEFORE = /(?:[\p{L}\p{M}'’-]{1,20} ){0,2}[\p{L}\p{M}'’-]{0,20}$/u
const WORDS_AFTER = /^[\p{L}\p{M}'’-]{0,20}(?: [\p{L}\p{M}'’-]{1,20}){0,2}/u
const BESIDE_CHARS = 48

/** Tells whether a word beside a label (such as "code") names the purpose of the code, such as a sign-in. */
function hasPurposeBeside(lower: string, start: number, end: number): boolean {
  const before = WORDS_BEFORE.exec(lower.slice(Math.max(0, start - BESIDE_CHARS), start))![0]
  const after = WORDS_AFTER.exec(lower.slice(end, end + BESIDE_CHARS))![0]
  return PURPOSE_BESIDE.test(`${before}${lower.slice(start, end)}${after}`)
}

const LABELS_MAX = 60

/**
 * Returns the labels (words that name a number) of a text in their order. The caller must limit the length of the text.
 */
export function labelsOf(text: string): Label[] {
  const labels: Label[] = []
  const lower = text.toLowerCase()
  for (const match of lower.matchAll(LABEL)) {
    const { other, certain, code } = match.groups!
    const start = match.index
    const end = start + match[0].length
    const kind =
      other !== undefined
        ? 'other'
        : certain !== undefined || (code !== undefined && hasPurposeBeside(lower, start, end))
          ? 'certain'
          : code !== undefined
            ? 'code'
            : 'access'
    labels.push({ kind, start, end })
    if (labels.length === LABELS_MAX) break
  }
  return labels
}

export const saysUse = (text: string): boolean => USE.test(text.toLowerCase())

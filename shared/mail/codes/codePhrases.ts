/**
 * Recognises typical phrases in some fifty languages, both in mails with a one-time code and in mails that only write
 * about codes. All given texts are in lower case.
 */

/** Tells whether a text states how long a code is valid, as in `10 minutes` or `expires`. */
export const saysValidity = (text: string): boolean =>
  /\d ?-?(?:min(?!\p{L})|minut|মিনিট|நிமிட|నిమిష|મિનિટ|ನಿಮಿಷ|മിനിറ്റ|منٹ|دقیقه|នាទី|ນາທີ|မိနစ်|წუთ|րոպե|dəqiqə|mínút|minūt|minučių|minuč|daqiqa|мин|хвилин|хв(?!\p{L})|分|분|دقيق|דקות|นาที|phút|menit|मिनट|λεπτ|perc|dk(?!\p{L})|dakika|hours?(?!\p{L})|stunde|heure|小时|小時|시간|час(?:а|ов|у)?(?!\p{L})|годин)|expire|valid (?:for|until)|gültig|läuft .{0,20}ab(?!\p{L})|valable|caduca|válid|scade|validità|geldig|verloopt|gilt(?!\p{L})|giltig|gyldig|udløber|utløper|voimassa|ważn[yae]|wygas[an]|platn[áý]|platí|érvényes|valabil|expiră|ισχύει|λήγει|geçerli|действ(?:ует|ителен)|истека|дійсн|діє(?!\p{L})|有効|有效|유효|만료|صالح|ينتهي|תקף|hiệu lực|berlaku|หมดอายุ|मान्य/u.test(
    text,
  )

/** Recognises the remark that another person may have requested the mail. An example is `if this was not you`. */
export const saysNotAsked = (text: string): boolean =>
  /(?:did(?:n['’]t| not)|haven['’]t|have not|wasn['’]t|was not|not) (?:you|request|ask|try|make|sign|initiate|start)|if (?:this|it) (?:wasn|was not)|ignore this|nicht angefordert|nicht selbst|nicht sie|nicht du|ignorier|n['’]avez pas|n['’]êtes pas|ignorez|no (?:has|ha|solicit|fuiste|fue)|ignor[ae]|não (?:solicit|foi|pediu|fez)|desconsider|non (?:hai|ha|sei|è stat)|niet (?:aangevraagd|zelf|door u)|negeer|inte (?:begär|du|bett)|ikke (?:bedt|dig|deg|har)|et (?:pyytänyt|itse)|älä huomioi|zignoruj|nie prosi|to nie ty|nepožád|nežádal|figyelmen kívül|nem (?:ön|te|kért|kérte)|nu (?:ați|ai) |αγνο[ήε]|δεν (?:ζητή|ήσ)|yok say|dikkate alma|siz (?:değil|istem)|не (?:запраш|вы(?!\p{L})|запит|ви(?!\p{L})|робили)|проигнор|проігнор|心当たり|覚えがない|ご本人|忽略|非本人|不是您|무시|본인이|تجاهل|לא ביקשת|bỏ qua|abaikan|เพิกเฉย/u.test(
    text,
  )

/** Recognises a warning to keep a one-time code secret. An example is `never share it`. */
export const saysNobodyAsks = (text: string): boolean =>
  /(?:do not|don['’]t|never) (?:share|give|forward|tell|disclose|ask)|(?:not|n['’]t) ask you|niemals|nicht weiter|geben sie .{0,30}nie|ne (?:le |la )?(?:partagez|communiquez|transmettez)|jamais|no (?:lo |la )?compart|nunca|não (?:o |a )?(?:partilhe|compartilhe)|non (?:condivid|comunicare|lo )|deel .{0,30}niet|nooit|dela (?:inte|aldrig)|aldrig|del (?:ikke|aldri)|aldri(?!\p{L})|älä (?:jaa|kerro)|nie (?:udostępniaj|podawaj|przekazuj)|nigdy|nesdělujte|nesdílejte|nikdy|ne (?:ossza|adja)|soha|nu (?:împărtăși|îl |o )|niciodată|μην (?:μοιρ|κοινο|τον)|ποτέ|paylaşmayın|kimseyle|никому|не (?:сообщай|передавай|повідомляй)|ніколи|никогда|他人|第三者|教えない|请勿|切勿|泄露|알려주지|공유하지|لا تشارك|אל תשתפ|không chia sẻ|jangan/u.test(
    text,
  )

/**
 * Tells whether a text says that a one-time code did not work or has expired. A mail with such a text speaks of codes
 * but contains none.
 */
export const saysFailure = (text: string): boolean =>
  /expired|fail(?:s|ed|ure)|invalid|reject|(?<!\p{L})errors?(?!\p{L})|not work|abgelaufen|ungültig|fehler|expiré|invalide|erreur|échou|verlopen|ongeldig|(?<!\p{L})fout|scadut|non valido|errore|caducad|vencid|inválid|utgång|ogiltig|(?<!\p{L})fel(?!\p{L})|udløbet|ugyldig|fejl|vanhent|virhe|wygas(?:ł|ły)|nieprawidłow|błąd|błęd|vypršel|neplatn|chyb[auy]|lejárt|érvénytelen|hiba|expirat|eroare|έληξε|σφάλμα|süresi dol|geçersiz|hata(?!\p{L})|истёк|истек(?!а)|ошибк|неверн|минув|помилк|期限切れ|エラー|过期|无效|错误|만료되|오류/u.test(
    text,
  )

/** Tells whether a subject is the subject of a reply or a discussion. */
export const startsReply = (subject: string): boolean =>
  /^ ?(?:re|aw|sv|vs|antw|odp|ynt|rv|res|ref|отв|回复|回覆|답장) ?[:：]/u.test(subject)

/** Tells whether a text asks the reader to give a code to friends, as in `Share your invite code with friends`. */
export const asksToShare = (text: string): boolean =>
  /(?<!\p{L})(?:(?:share|give|send|forward|tell|invite|refer)[^.!?]{0,60} (?:friends?|colleagues?|contacts|others)|(?:each|every) friend|earn (?:rewards?|credits?|points?|money|cash|[$€£]))(?!\p{L})/u.test(
    text,
  )

/** Tells whether a text names the code of an invitation. */
export const namesInvitation = (text: string): boolean => /invit\p{L}* codes?(?!\p{L})/u.test(text)

/**
 * Recognises words that tell the purpose of a link in the link's text and in the link's URL. The compared link texts
 * are in lower case.
 */

import {
  asksToConfirm,
  choosesMail,
  isEventOrGift,
  isPasswordless,
  resetsCredentials,
  subscribes,
} from './linkPhrases.ts'
import { NOTICE_SETTINGS, PASSWORD, SIGN_IN, UNSUBSCRIBE, VERIFY } from './linkStems.ts'

export type LinkPurpose = 'verify' | 'reset' | 'sign-in' | 'unsubscribe' | 'other'

/**
 * Matches the texts of links to the settings for received mail, such as `Manage notifications` and `E-mail
 * preferences`.
 */
const MAIL_SETTINGS =
  /(?:manage|change|skift|ubah|edit|update|adjust|choose|stop|turn off|disable|gérer|modifier|changer|ändern|verwalten|anpassen|gestionar|cambiar|administrar|gerir|gerenciar|alterar|gestisci|modifica|beheer|wijzig|aanpass|hantera|ändra|administrer|rediger|endre|muuta|hallitse|zarządzaj|zmień|spravovat|změnit|kezel|módosít|gestionează|modific[ăa]|διαχείριση|αλλαγή|yönet|değiştir|изменить|настро|управл|змінити|налашт|керув)\p{L}*.{0,30}(?:e-?mails(?!\p{L})|e-?mail(?=[ -]?(?:pref|settings|notif|alert|frequen|option|benachricht|einstell|abo|meld|varsl))|mails|newsletter|notifica|notificac|benachrichtigung|meldungen|préférences|preferenc|abonnement|meldingen|berichten|notiser|utskick|ilmoitu|powiadom|oznámen|értesít|notificări|ειδοποιήσ|bildirim|e-posta|уведомлен|рассылк|сповіщен|розсилк)|(?:benachrichtigung|notifica|meldingen|értesítés|bildirim|уведомлен|сповіщен)\p{L}*.{0,12}(?:ändern|verwalten|abstellen|ausschalten|wijzig|uitschakel|aan|beheer|módosít|yönet|kapat)|^(?:e-?mail[ -]?)?(?:preferences|préférences|preferências|preferencias|preferenze|voorkeuren|notification settings)(?: e-?mail)?:?$|配信の?(?:停止|解除|設定)|メール設定|通知設定|邮件设置|通知设置|알림 ?설정|수신 ?설정/u

/** Matches requests to end mail, such as `No more mails from us?` and `Leave the list`. */
const MAIL = `(?:e-?mails?|mails?|(?:such|these|this|those) (?:messages|notices|alerts|reminders|updates)|invitations|reminders|(?:this|the) (?:topic|thread|conversation)|ce sujet|cette discussion|einladungen|erinnerungen|dieses thema|recordatorios|avisos|lembretes|avvis[oi]|promemoria|meldinger|varsler|påmindelser|påminnelser|muistutuks\\p{L}*|przypomnie\\p{L}*|(?:ticari )?ileti\\p{L}*|hatırlatma\\p{L}*|напоминан\\p{L}*|תזכורות|הודעות|رسائل|تذكير\\p{L}*|e-?post(?:er)?|newsletters?|mailing lists?|the list|liste|lista|correos?|courriels?|berichten|nieuwsbrief|nyhedsbrev|nyhetsbrev|uutiskirje|posti|wiadomości|hírlevél|e-?posta|письм|почт|рассылк|розсилк|メール|邮件|郵件|메일)`
const STOP = `(?:stop|leave|mute|unfollow|(?:do not|don['’]t) want|vil (?:du |jeg )?ikke|ne plus suivre|ne souhaite[zs]? plus|nicht länger|הפסק\\p{L}*|إيقاف|remove|no more|no longer|fewer|which|quit|keine|nicht mehr|welche|ne plus|plus de|no (?:quier[eo]s?|recibir|más)|remov[ae]|sair|não quero|não receber|non (?:voglio|ricevere)|basta|geen|niet meer|styr|sluta|inga|ingen|slutt|en halua|lopeta|nie chc|nechci|nem kér|nu mai|çık|istem|не хоч|отказ|停|不再|그만|거부)`
const UNWANTED = new RegExp(
  String.raw`(?<!\p{L})${STOP}(?:.{0,25}[^\p{L}])?${MAIL}|${MAIL}.{0,25}[^\p{L}]${STOP}`,
  'u',
)

/**
 * Matches link texts such as `disable`, which stop an action. A link that stops an action is for a person who did not
 * request the mail.
 */
const ENDS =
  /disable|(?:stop|block|deny|reject|report) (?:this|the) (?:log|sign)[ -]?in|cancel (?:this|the|your) request|deactivate|(?:delete|close|remove) (?:your|my|the|this) account|konto löschen|supprimer (?:votre|mon|le) compte|eliminar (?:tu|su|mi|la) cuenta|excluir (?:sua|minha|a) conta|elimina (?:il tuo )?account|account verwijderen|accept (?:the |your |this |an? )?invit|einladung annehmen|accepter l['’]invitation|aceptar (?:la )?invitación|aceitar (?:o )?convite|accetta (?:l['’])?invito|uitnodiging accepteren|acceptera inbjudan|przyjmij zaproszenie|принять приглашение|接受邀请|招待を承認|report (?:this|it|abuse)|(?:was|is)(?:n['’]t| not) (?:me|you)|not me|secure (?:my|your) account|revoke|block (?:this|my|the)|nicht ich|sperren|ce n['’]était pas|no fui yo|não fui eu|non sono stat|niet ik|inte jag|ikke mig|ikke meg|en (?:ollut )?minä|to nie ja|nebyl jsem|nem én|nu am fost|δεν ήμουν|ben değil|(?<!\p{L})не я(?!\p{L})|違う場合|不是我|본인이 아/u

/**
 * Matches the text of a link that orders another mail, such as `Request a new link`. This other mail contains the link
 * that confirms an address.
 */
const ORDERS_MAIL =
  /(?:request|resend|send|get|order) (?:me )?(?:a |an |the )?(?:new|another|fresh)(?: \p{L}+){0,2} (?:link|verification|confirmation|e-?mail|token)|resend (?:the |my )?(?:verification|confirmation|activation)|(?:begär|beställ) (?:en )?ny|bestil (?:en |et )?ny|be om (?:en )?ny|neue[ns]? (?:\p{L}+ )?(?:link|bestätigung\p{L}*|token|e-?mail) (?:anfordern|senden|schicken)|(?:demander|renvoyer) (?:un |une )?(?:nouveau|nouvelle|nouvel)|(?:solicitar|pedir|reenviar|richiedi|richiedere|demanar|sol·licitar) (?:un |una |uma |um )?(?:nuev[oa]|nov[oa]|nuov[oa]|nou|enlace nuevo|link nuovo)|(?:vraag|aanvragen) (?:een )?nieuw|pyydä uusi|popro[sś] o now|vyžáda(?:t|ť) (?:si )?nov|kérj\p{L}* új|solicita(?:ți|ti)? (?:un |o )?nou|запросить нов|запитати нов|надіслати нов|ζητήστε νέ|yeni(?:den)? .{0,20}(?:iste|gönder)|再送|重新发送|重新發送|다시 (?:보내|요청)|طلب (?:رابط )?جديد/u

/** Matches link texts that do not tell the target of the link, such as `Click here`. */
const VAGUE =
  /^(?:(?:please )?(?:click|tap|press)|(?:follow|use|open|visit) (?:this|the) (?:link|address|page)|here|continue|next|open|yes|go|start|klick|hier|weiter|ja(?!\p{L})|cliquez|ici|continuer|oui|haga clic|pulse|aquí|continuar|sí(?!\p{L})|clique|aqui|sim|clicca|qui(?!\p{L})|continua|klik|ga (?:verder|door)|här|fortsätt|her(?!\p{L})|fortsæt|fortsett|tästä|jatka|siia(?!\p{L})|kliknij|tutaj|dalej|tak(?!\p{L})|klikněte|zde|pokračovat|ano|kattints|ide|tovább|igen|apasă|aici|da(?!\p{L})|εδώ|πατήστε|ναι|tıkla|buraya|devam|evet|(?:(?:ao?|á|en|n[oa]|no seguinte|o seguinte|este|esta|neste|nesta|nesse|nessa|ce|sur ce|questo|su questo|diese[mnr]?|auf diesen|deze|dit|op deze|denne|detta|den här|tento|ten|acest|bu|эт[аоу]й?|по этой|цим|за цим) ){0,2}(?:enlace|ligazón|lien|link|odkaz\p{L}{0,3}|ссылк[аеу]|посилання\p{L}?|länken?|lenken?|bağlantı\p{L}{0,4})$|нажмите|здесь|сюда|продолжить|да(?!\p{L})|натисніть|тут|დააჭირეთ|こちら|はい|点击|點擊|这里|继续|여기|계속|هنا|اضغط|לחץ|לחצו|כאן|nhấn|klik di sini|คลิก|սեղմ|այստեղ|incarca inoghe|cliceáil|cliciwch|klikatu|feu clic|fes clic|cliqueu|prema |fai clic|clicatz|calca|kliko|клікні|клікн|кликн|kliknite|щракнете|тук(?!\p{L})|націсніце|smelltu|hér(?!\p{L})|trýst|klõpsa|vajuta|noklikšķin|spied|šeit|spausk|spustel|čia|tukaj|ovdje|басыңыз|бас(?:у|ып)|осы жер|bosing|shu yer|klikləyin|bura(?!\p{L})|энд(?!\p{L})|کلیک|اینجا|یہاں|यहाँ|यहां|क्लिक|এখানে|ক্লিক|येथे|અહીં|ਇੱਥੇ|இங்கே|ఇక్కడ|ಇಲ್ಲಿ|ഇവിടെ|මෙතන|ກົດ|ចុច|နှိပ်|bấm|tại đây|di sini|pindutin|dito(?!\p{L})|bofya|hapa|danna|chofoza|guji|እዚህ|bitikîne|لێرە|دلته|klaku|klickt)/u

/**
 * Tells whether the text of a link says nothing about the link's purpose. The words before the link then decide about
 * the purpose.
 */
export const isVague = (text: string): boolean =>
  text.length <= 40 && VAGUE.test(text.trim().toLowerCase())

/** Matches the text of a link that allows an attempt to sign in, such as `Verify this login`. */
const ALLOWS_SIGN_IN = new RegExp(
  [
    String.raw`(?:verify|confirm|approve|authori[sz]e|allow) (?:(?:the|this|your|my|new) ){0,2}(?:log|sign)[ -]?in(?!\p{L})`,
    // The German word "Anmeldung" is missing, because it also means a registration.
    String.raw`(?:vahvista|hyväksy) kirjautumi|(?:bekräfta|bekræft|bekreft|godkänn|godkend|godkjenn) (?:\p{L}{1,20} )?(?:inlogg|innlogg|indlogg|pålogg|login)|(?:login|inloggen) (?:bestätigen|bevestigen)`,
    String.raw`confirme[rz]? (?:la |ta |votre )?connexion|confirm\p{L}{1,3} (?:o |el |tu |su |seu )?(?:inicio de sesión|acceso|acesso|login)|conferma\p{L}{0,4} (?:l['’]|il |il tuo )?(?:accesso|login)`,
    String.raw`(?:potwierdź|potvrdit|potvrďte|potvrdi) (?:logowanie|přihlášení|prihlásenie|prijavu)|подтверд\p{L}{1,8} вход|підтверд\p{L}{1,8} вхід|girişi? (?:onayla|doğrula)`,
  ].join('|'),
  'u',
)

/** Matches the text of a link that leads to an explanation, such as `How to reset your password`. */
const EXPLAINS =
  /^(?:how (?:to|do|can|does|we)|what |why |about |learn|read|more about|tips|guide|faq|help|wie |warum|was ist|anleitung|hilfe|mehr |ratgeber|comment |pourquoi|en savoir|aide|guide|cómo|qué es|ayuda|saiba|como |ajuda|come |cos['’]è|scopri|guida|aiuto|hoe |wat is|lees|hulp|så |hur |vad är|läs|sådan|hvordan|læs|hjælp|hva er|les mer|miten|mikä on|lue|ohje|jak |co to|dowiedz|pomoc|více|nápověda|hogyan|mi az|súgó|cum |ce este|ajutor|πώς|τι είναι|βοήθεια|nasıl|nedir|yardım|как |что такое|подробнее|помощь|справка|як |що таке|довідка|如何|怎么|什么是|帮助|어떻게|도움말|كيف|ما هو)|とは$|方法$|について$|guide$|tips$|anleitung$|방법$|\?$/u

const PATH_UNSUBSCRIBE =
  /unsub|\/(?:comments?|threads?|topics?)\/mute(?=[/?#]|$)|remove-?subscri|\/(?:settings|preferences|account|profile)\/(?:e-?mails?|notifications?)(?=[/?#]|$)|\/subscription\?(?:token|key)=|#(?:tab-)?(?:e-?mail-?)?notif|\/emails\/?(?=[?#]|$)|opt[-_]?out|(?:e?mails?|news(?:letter)?|notif\w{0,12}|comms?|contact)[-_/](?:pref|settings?|stop|off|manage|opt)|(?:settings|einstellungen|account|konto|profile|gestisci|gerer)[-_/](?:e-?mails?|notif|preferen)(?=.*[?=]|[^?]*\/)|pref(?:erence)?s?[-_/](?:e?mail|notif|news)|(?:manage|update|my|edit)[-_/](?:pref|notif|subscri)|pr[eé]f[eé]ren[cz]\w{0,4}[-_/]?(?:mail|$|[?#])|list-?manage|\/off(?=[/?#]|$)|(?:ileti|mail|bildirim)-?iptal|ne-plus-(?:suivre|recevoir)|unfollow|notif\w{0,12}[-_/](?:disattiva|désactiver|desactiver|desactivar|deaktiv\w{0,6})|abmeld|abbestell|wypis|odhlas|desinscri|desabon|darse-?de-?baja|\/baja|disiscri|uitschrij|afmeld|teken-uit|avregistr|avprenumer|avmeld|leiratkoz|dezabon|otpis|teishi|haishin|izin-?iptal|(?:nyheter|nieuwsbrief|newsletter)\/avsluta|aboneligi?|renunt|(?:notif\w{0,12}|alerts?|digests?|reminders?|e?mails?|news(?:letter)?)[-_/](?:mute|delete|off|stop|cancel|end|remove|pause)|(?:mute|cancel|stop|delete|remove|end)[-_/](?:notif|alerts?|digest|reminder|e?mails?|news)|mailing-?list\/(?:cancel|leave|off|remove|stop|delete)|\/prefs?(?=[/?#])|\/preferences(?=[?#])|e-?bill\/cancel|danysgrif|odjav|loobu|rezygn|voorkeuren|\/remove\.php\?|alerts?[-_/](?:edit|manage)/
const PATH_RESET =
  /(?<!\/e-?mail\/)reset|forgot|password[-_]double|(?<![a-z])pw[-_]?(?:change|reset|find)|find[-_]?pw(?![a-z])|\/password(?:\.php)?\?(?:key|token|code)=|lost[-_]?(?:pass(?:word)?|pw)|(?:password|passwort|passwd|pwd)[-_/]?(?:new|edit|change|recover|set|token)|recover(?:y)?[-_/]?(?:password|account)|\/recover(?:y)?(?=[/?#]|$)|(?:new|change|set|choose|recover)[-_/]?(?:password|passwd|pwd)|recuper|reinitiali|zur(?:ue|u|%c3%bc)cksetz|restablec|redefin|reimpost|contrase(?:n|%c3%b1)a|nova-?senha|mot-?de-?passe|wachtwoord|losenord|adgangskode|salasana|haslo|heslo|jelszo|contrasinal|contrasenya|slaptazod|parool|lozink|zapork|kodeord|passord|wagwoord|fjalekalim|cyfrinair|pasahitz|nenosiri|mat-?khau|kata-?sandi|geslo|parola|sifre|parol[-_/]|clave[-_/]?nueva|\/restore(?=[/?#]|$)|\/pin\/(?:ny|new|neu)|nueva-?clave|not-?(?:me|you)(?=[/?#])|wp-login\.php\?(?:.{0,200}&)?action=rp(?=&|$)/
const PATH_VERIFY =
  /verif|confirm|activat|validat|(?:change|update|new)[-_/]?e-?mail(?![-_]?(?:pref|set))|(?<!\/(?:settings|preferences)\/)e-?mail[-_/]?(?:change|update)|\/subscribe(?:\/.{0,200})?[?&]email=|opt[-_]?in(?![a-z])|double-?opt|bestaetig|aktiv(?:ier|eer|aci|iraj)|conferma|attiva|bevestig|bekraft|bekraeft|bekreft|vahvist|potwierdz|potvrd|overit|overen|megerosit|dogrula|onayla|podtver|pidtverd|pidtverzh|xac-?(?:nhan|minh)|konfirm|potvard|patvirtin|apstiprin|kinnita|(?:approve|trust)-?device/
const PATH_SIGN_IN =
  /magic|passwordless|auth_method=email|log[-_]?in(?![a-z]|-actions\/action-token)|login(?:with|via|by|token|link)|(?<!report[-_]?)sign[-_]?in(?![a-z])|one[-_]?time|(?<![a-z])(?:otl|sso)(?![a-z])|auth[-_/](?:link|email|callback)|connexion|iniciar-?sesion|anmeld|accedi(?![a-z])|inloggen|logga-?in|zaloguj|prihlas|bejelentkez|belepes|giris(?![a-z])|prisijung|sisene|sisselogi|pieslegt|prijav|kirjaudu|conectare|autentificare|masuk(?![a-z])|dang-?nhap/

/** Tells whether a link's text announces an explanation. */
export const explains = (text: string): boolean => EXPLAINS.test(text.trim().toLowerCase())

/**
 * Matches things, other than an address or an account, that a reader confirms or reviews, as in `Confirm your order`
 * and `Review weak passwords`. The pattern `EVENT_OR_GIFT` in linkPhrases.ts matches further things.
 */
const THINGS =
  /reactivat\p{L}{1,4} (?:(?:the|your|my) )?(?:subscription|membership|plan)|(?<!\p{L})(?:(?<!in )orders?|bookings?|payments?|purchases?|reservations?|appointments?|attendance|deliver(?:y|ies)|shipments?|members?|passwords)(?!\p{L})|bestellung|buchung|zahlung|commande|réservation|paiement|pedido|reserva(?!\p{L})|pago(?!\p{L})|ordine|prenotazione|pagamento|bestelling|boeking|betaling|beställning|bestilling|tilaukse|tilaus(?!\p{L})|zamówieni|objednávk|narudžb|naročil|rendelés|comand[aă]|παραγγελ|sipariş|заказ|замовлен|поръчк|注文|支払|订单|訂單|付款|주문|결제|הזמנ|đơn hàng|pe(?:me)?sanan|pembayaran|pembelian|thanh toán|płatnoś|platb|fizetés|plăț|plať|πληρωμ|ödeme|оплат|платеж|платіж|плащан|плаќањ|plaćanj|plačil|การชำระ|भुगतान|পেমেন্ট|תשלום|الدفع|پرداخت|คำสั่งซื้อ/u

/**
 * Matches characters without a width. Some words in Indian and Arabic scripts occur both with and without such
 * invisible characters.
 */
const INVISIBLE = /[\u00ad\u200b-\u200f\u2060\ufeff]/g

/** Sets the maximum length of a link text that orders another mail. A longer text is a sentence beside the link. */
const ORDER_MAX_CHARS = 50

/** Returns the purpose of a link (such as `reset` or `verify`) if the text of the link names a purpose. */
export function purposeOfText(text: string): LinkPurpose | undefined {
  const own = text.toLowerCase().replace(INVISIBLE, '').normalize('NFC')
  if ([UNSUBSCRIBE, MAIL_SETTINGS, NOTICE_SETTINGS, UNWANTED].some((words) => words.test(own)))
    return 'unsubscribe'
  if (ENDS.test(own) || (own.length <= ORDER_MAX_CHARS && ORDERS_MAIL.test(own))) return 'other'
  if (choosesMail(own)) return 'unsubscribe'
  if (isPasswordless(own) || ALLOWS_SIGN_IN.test(own)) return 'sign-in'
  const isThing = THINGS.test(own) || isEventOrGift(own)
  if (PASSWORD.test(own) || resetsCredentials(own)) return isThing ? undefined : 'reset'
  if (VERIFY.test(own) || asksToConfirm(own)) return isThing ? 'other' : 'verify'
  return SIGN_IN.test(own) && !subscribes(own) ? 'sign-in' : undefined
}

/**
 * Matches a value in the query of a URL that names the action of a link, as in `verify?type=recovery`. This value takes
 * precedence over the path of the URL.
 */
const ACT = /[?&#](?:type|action|mode|flow|kind|purpose|do)=(?<act>[\w-]{3,40})/

/**
 * Matches a URL path that confirms an address but reads like the path of a settings page, such as
 * `/settings/notifications/412/verify/…` and `/validate-profile-email?…`.
 */
const CONFIRMED_SETTING =
  /\/(?:settings|preferences|account|profile)\/.{0,200}(?:verif|confirm)|(?:verify|confirm|validate)[-_/](?:account|profile)[-_/]e-?mail/
/** Matches the path of a sign-up page that takes the code of a mail, such as `/signup/?code=…`. */
const SIGN_UP_CODE =
  /\/(?:sign[-_]?up|regist\w{1,10})(?:\/index\.\w{2,4}|\/)?\?(?:.{0,200}&)?(?:code|token|key)=/
/** Matches the path of an invitation, also if it leads to the sign-in page first. */
const INVITATION = /\/(?:sign|log)[-_]?in\/.{0,200}invit/
const SIGN_IN_FIRST = /^\/(?:#\/)?(?:sign|log)[-_]?in[/?]/
const SURE_SIGN_IN =
  /\/(?:mfa|2fa|two-?factor|log[-_]?in\/otp)\/|\/complete[-_]?sign[-_]?in(?=[/?])/

/**
 * Describes the purpose that the path of a link's URL names. A certain purpose (`isSure`) takes precedence over the
 * words of the link. The field `mayVerify` marks a sign-in URL that also contains a word for a confirmation, as in
 * `/login/confirm?id=…`.
 */
export type PathPurpose = {
  purpose: LinkPurpose | undefined
  isSure: boolean
  mayVerify: boolean
}

/** Returns the purpose that the path of a link's URL names. */
export function purposeOfPath(path: string): PathPurpose {
  const own = path.toLowerCase()
  const purpose = namedIn(own)
  return {
    purpose,
    isSure: purpose === 'reset' || (purpose === 'sign-in' && SURE_SIGN_IN.test(own)),
    mayVerify: purpose === 'sign-in' && SIGN_IN_FIRST.test(own) && PATH_VERIFY.test(own),
  }
}

function namedIn(own: string): LinkPurpose | undefined {
  if (PATH_UNSUBSCRIBE.test(own) && !CONFIRMED_SETTING.test(own)) return 'unsubscribe'
  // A path such as `/revoke/one-time-code` or `/ReportSuspiciousLogin` has the purpose `other`. Only a person who did not
  // request the mail opens such a link.
  if (/\/revoke(?=[/?]|$)|\/report[-_]?\w{0,20}(?:log|sign)[-_]?in/.test(own)) return 'other'
  const act = ACT.exec(own)?.groups?.act ?? ''
  if (/recover|reset|forgot|resend-?pwd/.test(act)) return 'reset'
  if (PATH_SIGN_IN.test(act)) return 'sign-in'
  // The action of a link such as `/password_double_opt?action=verified` confirms a new password.
  if (PATH_VERIFY.test(act)) return PATH_RESET.test(own.split('?', 1)[0]!) ? 'reset' : 'verify'
  if (PATH_RESET.test(own)) return 'reset'
  // A link for a second factor signs the reader in, even if its path contains `verify`, as in `/mfa/otp/verify`.
  if (SURE_SIGN_IN.test(own)) return 'sign-in'
  // A link with the path `/signin/verify?k=…` signs the reader in, because the first word of a path takes precedence.
  if (INVITATION.test(own)) return 'other'
  if (SIGN_IN_FIRST.test(own)) return 'sign-in'
  if (PATH_VERIFY.test(own) || SIGN_UP_CODE.test(own)) return 'verify'
  return PATH_SIGN_IN.test(own) ? 'sign-in' : undefined
}

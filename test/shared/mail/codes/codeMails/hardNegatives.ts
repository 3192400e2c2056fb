/**
 * Generates random test mails with numbers of every kind beside words that usually announce a one-time code. None of
 * these numbers is a code. Half of the templates are reserved for tests, so that the weights of the extraction rules
 * are learned only from the other half.
 */
import { createRandom, type Random } from '../../../../chaos/random.ts'
import { type CodeMail, coded, hashOf, VOICES, valuesOf } from './build.ts'

/**
 * Holds sentences and lines for test mails, in which `{n}` stands for n digits, and `{A}` for letters and digits.
 */
const TEMPLATES = [
  'Your code review #{5} was approved. Reviewers left 12 comments on build {6}.',
  'We changed the verification code page in release {4}. See pull request {4}.',
  'The login failed with error {5} because the code had expired at 10:41.',
  'Your security code was used at terminal {6} on 14.03.2026.',
  'Two-factor sign-in is now required. Ask for help on extension {5}.',
  'For your safety we never ask for your PIN. Call 0800 {6} if someone does.',
  'Your verification is complete. Customer number: {7}',
  'Your access code will arrive by post. Case {8} is open until then.',
  'Your one-time password arrives by text message to the number ending in {4}.',
  'Enter the building at {4} Harbour Street. The door code is on the notice board.',
  'Please verify invoice {6} before you confirm the payment of {4}.00 EUR.',
  'Sign in to see statement {8}. Your account {10} has a new message.',
  'Confirm your booking {A} at the desk. Room {4} is ready at 15:00.',
  'Use coupon SAVE{2} at checkout, or enter gift card {8}.',
  'The meeting ID is {9} and the passcode for guests is {6}.',
  'Dial in with PIN {4}# to join the conference.',
  'Wi-Fi at the venue: network Guest, access code {8}.',
  'Your code signing certificate with serial {8} ends soon.',
  'Country code 49, area code {4}, then the number {6}.',
  'Registered office: {4} King Street, postcode {5}. Company number {8}.',
  'Type 2-step verification in the search box. Article {7} explains the codes.',
  'ISO {5} and RFC {4} describe one-time codes in detail.',
  'Never use codes like {4}: of 3.4 million leaked PINs, {6} were the year of birth.',
  'Your authenticator was added on 12 March. Device {6}, session {8}.',
  'Ticket {6}: the customer gets no confirmation code. Log line {4} says 550.',
  'Your sign-in from {4} Main Road was blocked. Reference {8}.',
  'Username: agent{4}\nSign in with the password that you chose.',
  'User ID: {7}\nYour password was reset today.',
  'Token ID {7} was revoked. No access key is active now.',
  'API key ending {4} was created in workspace {6}.',
  'Your parcel {9} is at locker {4}. A code follows in a second mail.',
  'Locker {4}: opening hours 8:00–20:00. You will get a pick-up code later.',
  'Policy {8} is confirmed. Your security deposit is {4} GBP.',
  'Order {7} is confirmed. Confirmation was sent on 2026-03-14.',
  'Flight XY {4}, seat 14C, ticket {9}. Check in with your booking code {A}.',
  'Error code {4}: login rejected. Status code 403.',
  'QR code {6} on the label tells the product code {8}.',
  'Our sort code is 20-48-21 and the account number {8}.',
  'HTTP status {4} after 3 login attempts on port {4}.',
  'Version 2026.3.{4} lets you copy codes with one tap.',
  'Your tax code {4}L has changed. Employee number {6}.',
  'Survey: {4} of {5} users prefer one-time codes to passwords.',
  'Code of conduct, edition {4}, section 12. Signed by {4} members.',
  'Dein Kundenkonto {7} ist jetzt mit einem Sicherheitscode geschützt.',
  'Bestätigung: Auftrag {8}. Rückfragen unter 030 {7}.',
  'Die TAN-Liste {5} ist gesperrt. Vorgang {8}.',
  'Votre code a expiré. Dossier {7}, téléphone 01 {8}.',
  "Le code d'accès sera envoyé par courrier. Référence {8}.",
  'Su código fue rechazado (error {5}). Número de cliente: {7}.',
  'O seu código chega por SMS. Pedido {8}, NIF {9}.',
  'Il codice è scaduto. Pratica {7}, codice cliente {6}.',
  'Uw code is verlopen (fout {4}). Klantnummer {7}.',
  'Koden har gått ut. Ärende {6}, kundnummer {7}.',
  'Kod wygasł. Zgłoszenie {7}, numer klienta {6}.',
  'Platnost kódu vypršela. Požadavek {6}.',
  'Код устарел. Обращение {7}, номер договора {8}.',
  'Код не підійшов. Звернення {7}.',
  'Ο κωδικός έληξε. Υπόθεση {6}.',
  'Kodun süresi doldu. Talep {7}, müşteri numarası {6}.',
  'Your shipment {5} left the warehouse. The tracking code of the parcel is {A}.',
  'Tracking code for order {6}: {A}. Follow the parcel with it.',
  'The product code {6} is sold out. Item {5} takes its place.',
  '{6} requests ended with code 504 within 5 minutes on host {4}.',
  'summary: {4} responses with status code 502, alert {5} is firing.',
  'The job stopped in file "app/Mail/Code.php" on line {4} with code {6}.',
  'Exception in worker {4}: error with code {5}. It happened at 06:14.',
  'The asset with the tag {6} is checked out to you. Serial: {A}. Note: code {5}, 2nd floor.',
  'Deliver to 12 Mill Lane, gate code {4}, third floor. Order {7}.',
  'The customer with the number {6} has opened case {5} about code quality.',
  'A new member with the id {5} has joined. Member code {6}.',
  'Backup of server {4} ended with exit code 0 after {5} seconds.',
  'Host {4} is down with code {5} since 04:12. Acknowledge it in the console.',
  'Invoice {6} with code {5} of the supplier is due. The supplier code is {4}.',
  'The address was banned by Shield4Ban after {4} attempts.\n\nShield4Ban',
  'Ihre Sendung mit der Nummer {5} ist unterwegs. Sendungscode {A}.',
  'Ihr Paket mit der Nummer {6} wurde der Post übergeben.',
  'Der Vorgang mit der Nummer {5} ist erledigt. Kundencode {6}.',
  'Der Dienst endete mit dem Code {4} in Zeile {5}.',
  'Votre colis avec le numéro {6} est parti. Code de suivi : {A}.',
  'Le produit avec le code {6} est épuisé. Code article : {5}.',
  'El paquete con el número {6} está en camino. Código de seguimiento: {A}.',
  'El artículo con código {5} está agotado. Código de producto: {6}.',
  'O produto com o código {6} esgotou. Código de rastreio: {A}.',
  'Il pacco con il numero {6} è partito. Codice di tracciamento: {A}.',
  'Codice prodotto: {6}. Quantità: 2. Ordine {5}.',
  'Het pakket met nummer {6} is onderweg. Artikelcode {5}.',
  'Paketet med nummer {6} är på väg. Felkod {4} i rad {5}.',
  'Pakken med nummeret {6} er sendt. Varekode {5}.',
  'Paczka z numerem {6} jest w drodze. Kod produktu: {5}.',
  'Usługa zakończyła się kodem {4} w wierszu {5}.',
  'Zásilka s číslem {6} je na cestě. Kód zboží: {5}.',
  'Storitev se je končila s kodo {6} v vrstici {5}.',
  'Usluga je završila s kodom {5} u retku {4}.',
  'A csomag a {6} számmal úton van. Termékkód: {5}.',
  'Coletul cu numărul {6} este pe drum. Codul produsului: {5}.',
  'Посылка с номером {6} в пути. Код товара: {5}.',
  'Сервис завершился с кодом {5} в строке {4}.',
  'Посилка з номером {6} у дорозі. Код товару: {5}.',
  'Пратката с номер {6} е на път. Код на продукта: {5}.',
  'Адрес: Төв гудамж 12, код {6}, 4-р давхар. Захиалга {5}.',
  'Το δέμα με αριθμό {6} στάλθηκε. Κωδικός προϊόντος: {5}.',
  '{6} numaralı kargo yola çıktı. Ürün kodu: {5}.',
  'Paketti numerolla {6} on matkalla. Tuotekoodi: {5}.',
  'Pakk numbriga {6} on teel. Tootekood: {5}.',
  'Siuntos numeris {6}. Prekės kodas: {5}.',
  'Paket dengan nomor {6} sedang dikirim. Kode produk: {5}.',
  'Đơn hàng {6} đã gửi. Mã sản phẩm: {5}. Mã vận đơn: {A}.',
  'พัสดุหมายเลข {6} ส่งแล้ว รหัสสินค้า: {5}',
  'الشحنة رقم {6} في الطريق. رمز المنتج: {5}',
  'החבילה {6} בדרך. קוד מוצר: {5}',
  '商品コード: {6}\n商品名: 抹茶茶碗\n数量: 2',
  'エラーコード {5} で処理が終了しました。行 {4}',
  '商品编码：{6}\n数量：2\n订单号：{8}',
  '任务以错误代码 {5} 结束，行 {4}。',
  '상품 코드: {6}\n수량: 2\n주문 번호 {8}',
  '오류 코드 {5}(으)로 작업이 끝났습니다.',
  '認証コードの有効期限が切れました。お問い合わせ番号 {8}',
  '会員番号 {7} の確認が完了しました。',
  '验证码已过期。工单 {7}，客户号 {6}。',
  '인증번호가 만료되었습니다. 문의 번호 {7}',
  'انتهت صلاحية الرمز. رقم الطلب {7}',
]

const SUBJECTS = [
  'Your account',
  'Security notice',
  'Re: verification code does not arrive',
  'Confirmation',
  'Your sign-in settings',
  'Weekly news',
  'Order update',
  'Your parcel is on its way',
  'Order {5} has been shipped',
  '[FIRING] disk {4}',
  'Error in production',
  'Asset checked out',
  '2-step verification is on',
]

type Draw = { aside: boolean; seed: number }

/**
 * Generates `count` random mails with numbers but without a code. With `aside`, their sentences come from the templates
 * that are reserved for tests, and otherwise from the other templates.
 */
export function hardNegatives(count: number, { aside, seed }: Draw): CodeMail[] {
  const draw = createRandom(seed, 'hard negatives')
  return Array.from({ length: count }, (_, n) => ({
    id: `hard-negative-${aside ? 'aside' : 'open'}-${n}`,
    subject: filled(draw, draw.pick(SUBJECTS)),
    text: Array.from({ length: draw.int(1, 3) }, () => sentence(draw, aside)).join('\n\n'),
    codes: [],
    links: {},
  }))
}

/**
 * Generates `count` random mails with one code among sentences with other numbers, in all languages of the test mails.
 */
export function mixtures(count: number, { aside, seed }: Draw): CodeMail[] {
  const draw = createRandom(seed, 'mixtures')
  const voices = VOICES.filter(({ name }) => (hashOf(name) % 2 === 1) === aside)
  return Array.from({ length: count }, (_, n) => {
    const voice = draw.pick(voices)
    const id = `mixture-${aside ? 'aside' : 'open'}-${n}`
    const values = valuesOf(id, voice.language)
    const code = values.digits(draw.pick([4, 5, 6, 6, 6, 7, 8]))
    const shown =
      draw.chance(0.2) && code.length === 6 ? `${code.slice(0, 3)} ${code.slice(3)}` : code
    const noise = () => {
      if (voice.language === 'en' && draw.chance(0.5)) return sentence(draw, aside)
      const { order, shipping, invoice, alert, promo, ticket, advice, booking } = voice
      return values.fill(
        draw.pick([order, shipping, invoice, alert, promo, ticket, advice, booking]),
      )
    }
    const body = draw.pick([
      coded(voice.say, shown),
      `${voice.ask}\n\n${shown}`,
      `${voice.ask} ${shown}`,
      coded(voice.codeSubject, shown),
    ])
    const paragraphs = [
      ...Array.from({ length: draw.int(0, 2) }, noise),
      body,
      ...(draw.chance(0.6) ? [voice.expires] : []),
      ...Array.from({ length: draw.int(0, 3) }, noise),
    ]
    const subject = draw.pick([voice.subject, voice.brand, voice.help])
    return { id, subject, text: paragraphs.join('\n\n'), codes: [code], links: {} }
  })
}

function sentence(draw: Random, aside: boolean): string {
  const own = TEMPLATES.filter((template) => (hashOf(template) % 2 === 1) === aside)
  return filled(draw, draw.pick(own))
}

function filled(draw: Random, template: string): string {
  const digits = (count: number) => Array.from({ length: count }, () => draw.int(0, 9)).join('')
  return template
    .replace(/\{(\d+)\}/g, (_, n: string) => digits(Number(n)))
    .replace('{A}', () => `${draw.pick(['K', 'X', 'Q'])}${digits(1)}M${digits(1)}PT`)
}

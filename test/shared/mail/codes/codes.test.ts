import { describe, expect, test } from 'bun:test'
import { CODES_MAX, findCodes } from '../../../../shared/mail/codes/codes.ts'
import { findLinks, LINKS_MAX } from '../../../../shared/mail/codes/links/mailLinks.ts'
import { parseMail } from '../../../../shared/mail/parse/parseMail.ts'
import { LATER } from './codeMails/later.ts'

const codesOf = (text: string, subject = '') => findCodes({ subject, text, html: null })
const linksOf = (html: string, subject = '') => findLinks({ subject, text: '', html })
const valuesOf = (text: string, subject = '') => codesOf(text, subject).map(({ value }) => value)

const mail = (html: string) =>
  Buffer.from(`From: a@b.example\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n${html}`)

describe('the service finds one-time codes in a mail', () => {
  test('a one-time code of letters and digits has 4 to 10 characters, or up to 20 in groups with dashes', () => {
    const after = (value: string) => valuesOf(`Your code: ${value}`)
    expect(after('A1B')).toEqual([])
    expect(after('A1B2')).toEqual(['A1B2'])
    expect(after('A1B2C3D4E5')).toEqual(['A1B2C3D4E5'])
    expect(after('A1B2C3D4E5F')).toEqual([])
    expect(after('A1B2C-3D4E5-F6G7H-8J9K2')).toEqual(['A1B2C-3D4E5-F6G7H-8J9K2'])
    expect(after('A1B2C-3D4E5-F6G7H-8J9K2M')).toEqual([])
  })

  test.each([
    'Your one-time payment password: 483920',
    'Your one-time purchase password is 483920. Amount: $12.00 at Shop',
    'Your one-time gift card PIN 483920',
  ])('the one-time code for a payment is found in the text: %s', (text) => {
    expect(valuesOf(text)).toEqual(['483920'])
  })

  test.each(['Nambari yako ya uthibitisho ni:\n\n418603', 'Msimbo wako wa uthibitisho ni: 418603'])(
    'the one-time code in a Swahili text is found: %s',
    (text) => {
      expect(valuesOf(text)).toEqual(['418603'])
    },
  )

  test('if a mail shows the same code with and without a prefix, the service lists the code once, without the prefix', () => {
    for (const text of [
      'Your verification code is ACME-482913.\nYour verification code is 482913.',
      'Your verification code is 482913.\nYour verification code is ACME-482913.',
    ]) {
      expect(valuesOf(text)).toEqual(['482913'])
    }
  })

  test.each([
    'Your 2-factor authentication code is 482913.',
    'Complete the 2-step verification with 482913.',
    'Use 482913 to reset your password.',
    'Account: agent47\nYour verification code: 482913',
    'Username: ada2041\n\n482913 is your sign-in code.',
  ])('the service finds only the code in the text: %s', (text) => {
    expect(valuesOf(text, 'Sign in')).toEqual(['482913'])
  })

  test.each([
    'کد احراز هویت شما 418263 است.',
    'آپ کا او ٹی پی 418263 ہے',
    'Birdəfəlik şifrə: 418263',
    'ერთჯერადი პაროლი: 418263',
    'Chest al è il to codiç di autorizazion: 418263',
    'Mật khẩu dùng một lần: 418263',
    'အတည်ပြုနံပါတ်: 418263',
    'Nambari ya uthibitishaji 418263',
    'वन-टाइम पासवर्ड: 418263',
    'באשטעטיגונג קאד: 418263',
    'Váttanarkota: 418263',
    'Duođaštankoda: 418263',
    'Waehere manatoko: 418263',
    'Helu hōʻoia: 418263',
  ])('the code after a word for a code of one more language is found: %s', (text) => {
    expect(valuesOf(text)).toEqual(['418263'])
  })

  test.each([
    '-418263-',
    '--418263--',
    '_418263_',
    '~418263~',
    '#418263#',
    '=418263=',
    '–418263–',
    '^418263^',
  ])('a code that the sender decorates on both sides is found: %s', (shown) => {
    expect(valuesOf(`Your verification code ${shown} is valid for 5 minutes.`)).toEqual(['418263'])
    expect(valuesOf('Hello', `Your verification code: ${shown}`)).toEqual(['418263'])
  })

  test.each(['#418263', '@418263@', '~418263', '=418263', '-418263=', '/418263/', '-41-'])(
    'a number with marks that are no decoration on both sides is no code: %s',
    (shown) => {
      expect(valuesOf(`Your verification code for ${shown} comes in another mail.`)).toEqual([])
    },
  )

  test('the service finds a code below a sentence in Shona', () => {
    const text = 'Pinda kodhi yekusimbisa inotevera kuti upinde muakaundi yako.\n\n583027\n'
    expect(valuesOf(text, 'Musika Hub Kupinda')).toEqual(['583027'])
  })

  test.each([
    [
      'Galderak - Pasahitz berriz aktibatu',
      'Alternatiba moduan, hurrengo kodea emandako eremuan idatzi.\n\nCode: t7w2hc5z\n\nPasahitz aldaketa eskatu ez baduzu, alde batera utzi.',
      't7w2hc5z',
    ],
    [
      'DevDays 2026 - вашият VIP код',
      'Здравейте Иван,\n\nКодът ви е: K7QX2M9A. Моля, въведете кода си.\n\nПоздрави',
      'K7QX2M9A',
    ],
    [
      'Do chód rochtana',
      'Is féidir do chód rochtana a fháil thíos: NLI-7F3K-92QX\n\nLeabharlann Náisiúnta',
      'NLI-7F3K-92QX',
    ],
  ])('a code is found in a Basque, a Bulgarian and an Irish mail: %s', (subject, text, code) => {
    expect(valuesOf(text, subject)).toEqual([code])
  })

  test('a code of letters and digits that is alone below a sentence is found in a Georgian mail', () => {
    const text = 'გადაამოწმეთ თქვენი ელფოსტის მისამართი შემდეგი კოდის შეყვანით\n\nT4hV9qLe\n'
    expect(valuesOf(text, 'ელფოსტის გადამოწმება')).toEqual(['T4hV9qLe'])
  })

  test.each([
    'Ваш верификациони код је: f3a1 9c07',
    'Сигурносни код: f3a1 9c07',
    'Вашиот верификациски код е: f3a1 9c07',
    'Код за потврду: f3a1 9c07',
  ])('a code of letters and digits is found in Serbian and Macedonian: %s', (text) => {
    expect(valuesOf(text)).toEqual(['f3a19c07'])
  })

  test.each([
    'Your one-time discount code: VELOX-7QK2M9',
    'Boncode: GV8K2QXM',
    'Cadeauboncode: GV8K2QXM',
    'Mã đơn hàng: 583914',
    'Kode pesanan: 583914',
    'Bestillingskode: 583914',
    'Kodi i porosisë: 583914',
    'Код поръчки: 583914',
    'Код на поръчката: 583914',
    'کد سفارش: 583914',
  ])('the number of an order does not count as a one-time code: %s', (text) => {
    expect(valuesOf(text)).toEqual([])
    expect(valuesOf(text, 'Confirm your e-mail')).toEqual([])
  })

  test('a number is a one-time code if its line says to enter it, even without the word code', () => {
    expect(valuesOf('Enter 482913 to sign in.')).toEqual(['482913'])
    expect(valuesOf('We have 482913 members.')).toEqual([])
  })

  test('a one-time code is found beside a long dash, or directly before a sentence without a space', () => {
    expect(valuesOf('', '482913\u2014your Acme verification code')).toEqual(['482913'])
    expect(valuesOf('Your verification code\u2014482913')).toEqual(['482913'])
    expect(valuesOf('Your OTP is 482913.Do not share it with anyone.')).toEqual(['482913'])
    expect(valuesOf('Your OTP for login is:-482913')).toEqual(['482913'])
  })

  test('a number alone on a line below a title such as "Confirm your e-mail" is a one-time code', () => {
    const text = 'Confirm your e-mail\n\n7719'
    expect(findCodes({ subject: 'Mail', text, html: null }).map(({ value }) => value)).toEqual([
      '7719',
    ])
    const bill = 'Your parcel has arrived\n\n7719'
    expect(findCodes({ subject: 'Mail', text: bill, html: null })).toEqual([])
  })

  test('the service finds each one-time code in a numbered list', () => {
    const listed = 'Your backup codes:\n1. 4K7QZ92M\n2. X8PB31LT\n3) 9DW5RN0V'
    expect(valuesOf(listed).toSorted()).toEqual(['4K7QZ92M', '9DW5RN0V', 'X8PB31LT'])
    expect(valuesOf('We mended faults, but send no code:\n1. CVE-2025-20881')).toEqual([])
  })

  test('a long code that a line shows in groups is found without its spaces, but the number of an account is not', () => {
    const recovery = 'You can use this recovery code to sign in:'
    expect(valuesOf(`${recovery}\n\nK5ZQ 7WXD 3MTA HV2P`)).toEqual(['K5ZQ7WXD3MTAHV2P'])
    expect(valuesOf(`${recovery}\n\nK5ZQ7 WXD3M TAHV2`)).toEqual(['K5ZQ7WXD3MTAHV2'])
    for (const none of [
      `${recovery}\n\nES91 2100 0418 4502 0005 1332`,
      `${recovery}\n\nK5ZQ 7WXD 3MTA HV2P for Ada`,
      'Sign in with your account:\n\nK5ZQ 7WXD 3MTA HV2P',
    ]) {
      expect([none, valuesOf(none)]).toEqual([none, []])
    }
  })

  test('each code in a list of long backup codes is found, but none in a list of two words, of hashes, or of words of unequal length', () => {
    const codes = ['09a81f8dd993dc59', 'fa750b9d03637250', '6866ed166bcd5744']
    const list = codes.join('\n')
    expect(valuesOf(`Use one of the following backup codes to log in:\n\n${list}`)).toEqual(codes)
    for (const text of [
      `Use one of the following backup codes to log in:\n\n${codes.slice(1).join('\n')}`,
      `Your backup codes come by post.\nThese commits were built:\n${list}`,
      `The build is done.\nThese commits changed the code:\n${list}`,
      `Thank you for your order.\nHere are your license codes:\n${list}`,
      `Use one of the following backup codes to log in:\n${list.replace('fa75', 'fa7')}`,
    ]) {
      expect([text, valuesOf(text)]).toEqual([text, []])
    }
  })

  test('a number in a report beside an exit code in Galician is no code', () => {
    expect(
      valuesOf(
        'A petición #48213 actualizouse.\nO informe mensual 202505 non remata; código de saída 137.',
      ),
    ).toEqual([])
  })

  test('each code of a list of backup codes on one line is found, but the groups of a telephone number are not', () => {
    const codes = ['4F9A-71CE', 'B208-6D3F', '9E51-0A7B']
    expect(valuesOf(`Your backup codes:\n${codes.join(' ')}`).toSorted()).toEqual(codes.toSorted())
    expect(valuesOf('Your backup codes come by post.\nCall 0800 1234 5678')).toEqual([])
  })

  test('if a mail does not say what a code is for, a number of a product, an error, a parcel or a machine is no one-time code', () => {
    const notices = [
      'Your parcel with the number 48170 was sent.\nThe carrier is DHL.\nTracking code: KX4M71PT\nOrder: 217463',
      'Alert\nsummary: 482913 responses with code 503 in 10 minutes\nseverity: critical\ninstance: edge-3',
      'Error on the server\nThe error is in the file "app/Amount.php" on line 284917 with code 500213.\nUser: 1042\nHello',
      '商品コード: 730192\n商品名: 抹茶茶碗\n数量: 2\n合計: 6,380',
      'The address was banned.\nAttempts: 5\nRegards,\nFail2Ban',
    ]
    for (const text of notices) expect([text, ...valuesOf(text)]).toEqual([text])
    const reset = 'Pozdravljeni!\nKoda za ponastavitev gesla: 905163\nKoda velja 15 minut.\nEkipa'
    expect(valuesOf(reset)).toEqual(['905163'])
  })

  test('a one-time code is found even if the sender forgot the full stop after it', () => {
    const text =
      'Your withdrawal code is 407286 It was generated at 2026-02-17 08:14:52 and is valid for 30 minutes.'
    expect(valuesOf(text)).toEqual(['407286'])
  })

  test.each(['인증번호 입니다. 583204', 'Here is your verification code. 583204.'])(
    'a number at the end of a line is a one-time code if the sentence before it names a code: %s',
    (text) => {
      expect(codesOf(text)).toMatchObject([{ value: '583204', confidence: expect.any(Number) }])
      expect(codesOf(text)[0]!.confidence).toBeGreaterThan(0.9)
    },
  )

  test('a number at the end of a line is no one-time code if the sentence before it mentions no code', () => {
    expect(valuesOf('We have moved to our new office. 583204')).toEqual([])
  })

  test.each(['Còdighe de verìfica: WmD9aqX7tB2h', 'Codighe de cunfirma: 827364'])(
    'the one-time code in a Sardinian text is found: %s',
    (text) => {
      expect(valuesOf(text)).toEqual([text.split(': ')[1]!])
    },
  )

  test('a long code is found only if a link also contains the code, and the words before the code call it a code', () => {
    const link = 'https://a.example/register/q7Lw2ZrT9xKcM4vB8nYsE1hJdP6gUf'
    const shown = (words: string) => valuesOf(`Confirm: ${link}\n${words}`)
    const code = 'q7Lw2ZrT9xKcM4vB8nYsE1hJdP6gUf'
    expect(shown(`Your activation code is:\n\n${code}`)).toEqual([code])
    expect(shown(`Use the code ${code} in the app.`)).toEqual([code])
    expect(shown(`Parcel ${code} arrives. We send the code later.`)).toEqual([])
    expect(shown(`Your code has no link. Parcel ${code} arrives.`)).toEqual([])
    expect(valuesOf(`Your activation code is:\n\n${code}`)).toEqual([])
  })

  test('a long random code is found without a link if the words before it and a colon call it a one-time code', () => {
    const code = 'Q3f8VtYb6Hn1JcXz5GkE'
    const found = (words: string) => valuesOf(`Reset your password.\n\n${words} ${code}\n\nBye`)
    expect(found('Your verification code:')).toEqual([code])
    expect(found('Iskoristite ključ za promjenu šifre:')).toEqual([code])
    expect(found('Your verification code')).toEqual([])
    expect(found('Your code:')).toEqual([])
    expect(found('API key:')).toEqual([])
    const below = `Copy the code below to confirm your identity.\n\n${code}\n\nBye`
    expect(valuesOf(below, 'Your verification code')).toEqual([code])
    expect(valuesOf(below, 'Your identity')).toEqual([])
  })

  test('a code in the parameter `nonce` of a link is found beside the link', () => {
    const link = 'https://a.example/verify?email=zofia%40example.pl&nonce=31840'
    const text = `Zweryfikuj nowy adres: ${link}\n\nMożesz też skopiować następujący kod do okna przeglądarki: 31840`
    expect(valuesOf(text, 'Nowy adres e-mail')).toEqual(['31840'])
  })

  test('in Thai, Hebrew and Vietnamese, the word "your" may stand between a label and its code', () => {
    expect(valuesOf('รหัสยืนยันของคุณคือ: 9b04e7d1')).toEqual(['9b04e7d1'])
    expect(valuesOf('קוד האימות שלך הוא: 4718')).toEqual(['4718'])
    expect(valuesOf('Mã xác nhận của bạn là 4718')).toEqual(['4718'])
  })

  test('the year in a copyright notice is not a code', () => {
    const text = 'Your code:\n\n90574\n\n© 2024'
    expect(findCodes({ subject: '', text, html: null }).map(({ value }) => value)).toEqual([
      '90574',
    ])
  })

  test('neither a numbered label such as PIN1 nor the host name of the sender is a one-time code', () => {
    const label = 'Please enter the code PIN1: 41907385'
    expect(findCodes({ subject: '', text: label, html: null }).map(({ value }) => value)).toEqual([
      '41907385',
    ])
    const sentence = 'Please enter the code PIN1.\n\nPIN1: rxew44h5'
    expect(valuesOf(sentence)).toEqual(['rxew44h5'])
    const name = 'k9u0k\n\nYour verification code is:\n\n6095\n\nWrite to help@k9u0k.example'
    expect(findCodes({ subject: '', text: name, html: null }).map(({ value }) => value)).toEqual([
      '6095',
    ])
    const shown = '<img src="https://api.k9u0k.example/a.png"><p>Code: <b>6095</b></p><b>K9U0K</b>'
    const picture = {
      subject: '',
      text: 'Verification code: 6095\n\nBest regards,\nK9U0K',
      html: null,
      shown,
    }
    expect(findCodes(picture).map(({ value }) => value)).toEqual(['6095'])
  })

  test('random letters are a one-time code if they are alone on a line or after a colon, but a product name is not', () => {
    expect(valuesOf('Use this code to sign in:\n\nzlQEWh\n\nThanks')).toEqual(['zlQEWh'])
    expect(valuesOf('Your verification code is: zlQEWh')).toEqual(['zlQEWh'])
    expect(valuesOf('Use this code to sign in:\n\nGitHub\n\n204417')).toEqual(['204417'])
    expect(valuesOf('Your code lets zlQEWh sign in.')).toEqual([])
  })

  test('pairs of hexadecimal digits with dashes are one code, even if some pairs contain only the digits 0 to 9', () => {
    expect(valuesOf('Enter the code below.\n\nPIN: 98-8D-77-59')).toEqual(['98-8D-77-59'])
    expect(valuesOf('Enter the code below.\n\nPIN: CA-D5-26-FF')).toEqual(['CA-D5-26-FF'])
  })

  test('in a Bulgarian mail, an activation code is found after the phrase for "your activation code is"', () => {
    expect(valuesOf('Вашият код за активиране е 7H4K-Q2MD.')).toEqual(['7H4K-Q2MD'])
  })

  test('a code that verifies a booking is a one-time code, but the number of a booking is not', () => {
    expect(valuesOf('Vaš verifikacijski kod za rezervaciju je:\n\n250964')).toEqual(['250964'])
    expect(valuesOf('Your booking number is 250964.')).toEqual([])
  })

  test('a word of letters and digits alone on a line is a one-time code if the word has at most 12 characters', () => {
    expect(valuesOf('Please use this code:\n\nTb4XgQ9zLwY2')).toEqual(['Tb4XgQ9zLwY2'])
    expect(valuesOf('Please use this code:\n\nTb4XgQ9zLwY2k')).toEqual([])
    expect(valuesOf('Your code opens Tb4XgQ9zLwY2 now.')).toEqual([])
  })

  test('ten digits after a label are a one-time code, but a telephone number in a sentence is not', () => {
    expect(valuesOf('Your one-time code is 1258941219.')).toEqual(['1258941219'])
    expect(valuesOf('If you have no code, call us on 8005550142 today.')).toEqual([])
  })

  test('a Japanese postal code is not a one-time code', () => {
    expect(valuesOf('認証コード: 483920\n\n〒113-0033 東京都文京区')).toEqual(['483920'])
  })

  test('a found code has a type, a value, a confidence, and the mail part and line in which it was found', () => {
    expect(codesOf('Hello,\n\nyour verification code is 482 913.\n')).toEqual([
      {
        kind: 'numeric',
        value: '482913',
        confidence: expect.any(Number),
        part: 'text',
        line: 'your verification code is 482 913.',
      },
    ])
    expect(codesOf('', '482913 is your code')).toMatchObject([{ part: 'subject' }])
    expect(codesOf('Sign-in code: ABCD-2345')).toMatchObject([
      { kind: 'alphanumeric', value: 'ABCD-2345' },
    ])
    expect(
      findCodes({ subject: '', text: 'See the HTML.', html: 'Your code\n\n4 8 2 9 1 3' }),
    ).toMatchObject([{ value: '482913', part: 'html' }])
  })

  test('the list of codes begins with the most certain code, and contains each value once', () => {
    const codes = codesOf(
      'The second code is 111222.\nYour one-time code: 333444\nYour code: 333444',
    )
    expect(codes.map(({ value }) => value)).toEqual(['333444', '111222'])
  })

  test('if a number has several labels, the nearest label decides whether the number is a one-time code', () => {
    expect(valuesOf('Your code is 482913 for order 771204.')).toEqual(['482913'])
    expect(valuesOf('Order 771204: your code is 482913.')).toEqual(['482913'])
    expect(valuesOf('Your promo code is 482913.')).toEqual([])
    expect(valuesOf('Buchungscode: K2M9QX')).toEqual([])
  })

  test.each([
    'Your code expires on 12.03.2026 at 18:45.',
    'Your code was sent to +49 30 1234567.',
    'Your code costs € 4829 or 4829 EUR or $4,829.00.',
    'Your code works from 203.0.113.48 with version 131.0.6778.',
    'Enter the code below the colour #482913.',
    'Your code is at https://a.example/code/482913.',
    'Your code came in 2026.3.1 for user482913.',
    'Postcode 482913 and postcode 1012 AB.',
    'The code failed: process[4829] ended.',
  ])('the service finds no code in the text: %s', (text) => expect(valuesOf(text)).toEqual([]))

  test('the service finds no one-time codes in a delivery status notification', async () => {
    const { codes } = await parseMail(
      Buffer.from(
        'From: <>\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nYour code 482913\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\nFinal-Recipient: rfc822; a@b.example\r\nAction: failed\r\nStatus: 5.1.1\r\n--b--\r\n',
      ),
      'inbox.example',
    )
    expect(codes).toEqual([])
  })

  test('the service finds no one-time code in the hidden text of a mail', async () => {
    const { codes, mailLinks } = await parseMail(
      mail(
        '<p style="display:none">Your code is 111111 <a href="https://x.example/reset?t=Abc123Abc123">x</a></p><p>Your code is <b>284016</b></p><p style="font-size:0">Your code is 333333</p>',
      ),
      'inbox.example',
    )
    expect(codes.map(({ value }) => value)).toEqual(['284016'])
    expect(mailLinks).toEqual([])
  })

  test('in a mail with 500 codes, the service finds at most CODES_MAX codes', () => {
    const text = Array.from(
      { length: 500 },
      (_, n) => `Your one-time code is ${100_000 + n}.`,
    ).join('\n')
    expect(codesOf(text)).toHaveLength(CODES_MAX)
  })
})

describe('the service finds the codes of mails that were written after the first version of the extraction rules', () => {
  test.each(LATER)(
    'in the later test mail with the subject "%s", all codes are found',
    (subject, text, codes) => expect(valuesOf(text, subject)).toEqual(codes),
  )
})

describe('the service finds links in a mail', () => {
  test('a link that is found has an address, a text and a purpose, and a link to reset a password is marked as sensitive', () => {
    expect(
      linksOf(
        '<p>Hi <a href="https://a.example/password/reset?token=Ab12Cd34Ef56&amp;x=1"><b>New</b> password</a><a href=\'https://a.example/blog\'><img alt="Blog"></a>',
      ),
    ).toEqual([
      {
        href: 'https://a.example/password/reset?token=Ab12Cd34Ef56&x=1',
        text: 'New password',
        purpose: 'reset',
        sensitive: true,
      },
      { href: 'https://a.example/blog', text: 'Blog', purpose: 'other', sensitive: false },
    ])
  })

  test('a tracking link keeps its address, and the words of its button decide its purpose', () => {
    const href = 'https://click.mailer.example/ls/click?upn=u001Xy7Kd02mQp'
    expect(linksOf(`<a href="${href}">Confirm email</a>`)).toMatchObject([
      { href, purpose: 'verify' },
    ])
  })

  test('a link has the purpose `other` if its page looks the same for every visitor', () => {
    expect(linksOf('<a href="https://a.example/login">Log in</a>')).toMatchObject([
      { purpose: 'other' },
    ])
  })

  test('only absolute http and https addresses are links', () => {
    const hrefs = ['javascript:alert(1)', 'mailto:a@b.example', 'data:text/html,x', '#top', '/a']
    expect(linksOf(hrefs.map((href) => `<a href="${href}">Verify</a>`).join(''))).toEqual([])
  })

  test('if a mail has too many links, the service keeps links with a purpose first, and limits their number and total bytes', () => {
    const others = Array.from({ length: 400 }, (_, n) => `<a href="https://a.example/${n}">n</a>`)
    const links = linksOf(
      `${others.join('')}<a href="https://a.example/unsubscribe/1">Unsubscribe</a>`,
    )
    expect(links).toHaveLength(LINKS_MAX)
    expect(links.at(-1)).toMatchObject({ purpose: 'unsubscribe' })
    const long = `https://a.example/${'x'.repeat(3_900)}`
    const bytes = JSON.stringify(
      linksOf(Array.from({ length: 90 }, (_, n) => `<a href="${long}${n}">n</a>`).join('')),
    ).length
    expect(bytes).toBeLessThan(40_000)
    expect(linksOf(`<a href="${long}${'y'.repeat(200)}">n</a>`)).toEqual([])
  })
})

const MEGABYTE = 1_000_000
const hostile: [string, string][] = [
  ['10 MB of digits', '0123456789'.repeat(MEGABYTE)],
  ['10 MB of spaced digits', '1 2 3 4 5 '.repeat(MEGABYTE)],
  ['lines of codes', 'Your code is 482913.\n'.repeat(MEGABYTE / 4)],
  ['one line of codes', 'Your code is 482913. '.repeat(MEGABYTE / 4)],
  ['letters without an end', 'code'.repeat(2 * MEGABYTE)],
  ['dashes', 'A1-'.repeat(MEGABYTE)],
  ['words with dashes', 'lumen-otter-'.repeat(MEGABYTE)],
  ['groups of digits', '12-34 '.repeat(MEGABYTE)],
  ['labels in long words', `${'promo'.repeat(50)} 482913\n`.repeat(20_000)],
  ['compound words', `${'vahvistusturvapromo'.repeat(9)} ${'4829 '.repeat(40)}\n`.repeat(20_000)],
  ['many addresses', 'https://a.example/x '.repeat(MEGABYTE / 2)],
  ['an endless address', `https://${'a'.repeat(8 * MEGABYTE)}`],
  ['brackets', '[ '.repeat(4 * MEGABYTE)],
  ['stars', '*'.repeat(8 * MEGABYTE)],
  ['open anchors', '<a href="'.repeat(MEGABYTE)],
  ['anchors without an end', '<a href=https://a.example/x1>'.repeat(MEGABYTE / 4)],
  ['deep elements', `${'<div>'.repeat(MEGABYTE)}Your code is 482913`],
  ['open tags', '<'.repeat(8 * MEGABYTE)],
  ['spaces', `<a ${' '.repeat(8 * MEGABYTE)}href=x>`],
  ['entities', '&#x31;'.repeat(MEGABYTE)],
]

describe('the service limits the number of codes and links in a mail with hostile texts', () => {
  test.each(hostile)(
    'the numbers of codes and links stay limited in a mail with %s',
    (_name, text) => {
      const codes = findCodes({ subject: text.slice(0, 4_000), text, html: text })
      const links = findLinks({ subject: text.slice(0, 4_000), text, html: text })
      expect(codes.length).toBeLessThanOrEqual(CODES_MAX)
      expect(links.length).toBeLessThanOrEqual(LINKS_MAX)
    },
  )

  test('words in a mail that are also names of built-in JavaScript properties are treated as ordinary words', () => {
    expect(valuesOf('Your code is __proto__ constructor 482913.')).toEqual(['482913'])
    expect(
      linksOf('<a href="https://a.example/__proto__">&constructor; &toString;</a>'),
    ).toHaveLength(1)
  })
})

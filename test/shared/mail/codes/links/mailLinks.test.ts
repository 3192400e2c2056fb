/** Tests which links of a mail the service reads, and which words decide the purpose of a link. */
import { describe, expect, test } from 'bun:test'
import { findLinks } from '../../../../../shared/mail/codes/links/mailLinks.ts'

const TOKEN = '7c1f3a9be02d4485'
const at = (path: string) => `https://a.example${path}`
const personal = (path: string) => at(`${path}?t=${TOKEN}`)
const anchor = (href: string, words: string) => `<a href="${href}">${words}</a>`
const linksOf = (html: string | null, { text = '', subject = '' } = {}) =>
  findLinks({ subject, text, html })
const purposeOf = (html: string, subject = '') => linksOf(html, { subject })[0]?.purpose
const purposeOfBare = (text: string, subject = '') => linksOf(null, { text, subject })[0]?.purpose

describe('a link address that occurs twice in a mail becomes one link', () => {
  const verify = anchor(personal('/go'), 'Verify your email')
  const plain = anchor(personal('/go'), 'Open')

  test('if a mail shows an address twice, the service lists one link, with the first purpose and the first words', () => {
    const reset = anchor(personal('/go'), 'Reset your password')
    expect(linksOf(verify + reset)).toEqual([
      { href: personal('/go'), text: 'Verify your email', purpose: 'verify', sensitive: false },
    ])
    expect(linksOf(reset + verify)[0]).toMatchObject({ purpose: 'reset', sensitive: true })
  })

  test('if an address occurs twice and its first occurrence has no purpose, the link gets the purpose of the second', () => {
    expect(linksOf(plain + verify)).toMatchObject([{ text: 'Open', purpose: 'verify' }])
    expect(linksOf(verify + plain)).toMatchObject([
      { text: 'Verify your email', purpose: 'verify' },
    ])
    expect(linksOf(plain + plain)).toMatchObject([{ purpose: 'other' }])
  })

  test('if a button and a bare URL have the same address, words beside the bare URL do not give the purpose verify or sign-in', () => {
    const button = anchor(personal('/go'), 'Read the news')
    const beside = (words: string) => linksOf(button, { text: `${words}:\n${personal('/go')}` })
    expect(beside('Verify your email')[0]!.purpose).toBe('other')
    expect(beside('Sign in to your account')[0]!.purpose).toBe('other')
    expect(beside('Reset your password')[0]!.purpose).toBe('reset')
    const other = linksOf(button, { text: `Verify your email:\n${personal('/x')}` })
    expect(other[1]!.purpose).toBe('verify')
  })
})

test('a link to a wiki has a purpose only if its address contains a secret', () => {
  const wiki = 'https://wiki.acme.example'
  expect(purposeOfBare(`${wiki}/doku.php?do=resendpwd&pwauth=3a1f08c7de5b4492`)).toBe('reset')
  expect(purposeOfBare(`${wiki}/Special:AccountRecovery/confirm/5d7e0a94c1b24f88`)).toBe('verify')
  expect(purposeOfBare(`${wiki}/doku.php?id=resendpwd`)).toBe('other')
  expect(purposeOfBare(`${wiki}/confirm/how-to-confirm-2`)).toBe('other')
})

test('a bare URL in HTML counts as a link, but a URL that a link shows as its text does not', () => {
  const url = 'https://a.example/activation/confirm/eyJ0eXAiOiJKV1QiLCJhbGci'
  const bare = findLinks({ subject: '', text: '', html: `Here is your url:<br>${url}<br>Regards` })
  expect(bare).toMatchObject([{ href: url, purpose: 'verify' }])
  const html = `<a href="https://track.example/c/1">${url}</a>`
  expect(findLinks({ subject: '', text: '', html }).map(({ href }) => href)).toEqual([
    'https://track.example/c/1',
  ])
})

test('a short token in a link’s path makes the link personal if an action such as edit, or a slash, follows the token', () => {
  const purpose = (url: string) => findLinks({ subject: '', text: url, html: null })[0]?.purpose
  expect(purpose('https://ask.example/password_resets/Rk27bTq9/edit')).toBe('reset')
  expect(purpose('https://news.example/api/subscribers/9f20ab/confirm')).toBe('verify')
  expect(purpose('https://ink.example/user/activate/IjQ1ODAi/')).toBe('verify')
  expect(purpose('https://shop.example/account/edit')).toBe('other')
  expect(purpose('https://jet.example/email/reset/5d9b0c3a17')).not.toBe('reset')
})

test('a link that resets sign-in credentials has the purpose `reset`', () => {
  const href = 'https://sso.example/action-token?key=eyJhbGciOiJIUzUxMiJ9'
  for (const words of ['Link to reset credentials', 'Zurücksetzen der Anmeldedaten']) {
    const html = `<a href="${href}">${words}</a>`
    expect(findLinks({ subject: '', text: '', html })).toMatchObject([{ purpose: 'reset' }])
  }
})

describe('the words of a link decide its purpose', () => {
  test('if a link’s words mean the purpose `unsubscribe` or `other`, the words count more than the link’s path', () => {
    expect(purposeOf(anchor(personal('/verify-email'), 'Unsubscribe'))).toBe('unsubscribe')
    expect(purposeOf(anchor(personal('/unsubscribe'), 'Verify your email'))).toBe('unsubscribe')
    expect(purposeOf(anchor(personal('/verify-email'), 'Accept invitation'))).toBe('other')
  })

  test('if a link is a picture, its words are the picture’s alt text, and never another attribute', () => {
    const picture = (attribute: string) =>
      anchor(personal('/go'), `<img ${attribute}="Verify your email">`)
    expect(purposeOf(picture('alt'))).toBe('verify')
    expect(purposeOf(picture('title'))).toBe('other')
    expect(purposeOf(anchor(personal('/go'), '<span alt="Verify your email">Open</span>'))).toBe(
      'other',
    )
  })

  test('the words of a link are cut to at most 200 characters', () => {
    expect(linksOf(anchor(personal('/go'), 'a'.repeat(201)))[0]!.text).toBe('a'.repeat(200))
  })

  test('a link has the purpose `other` if its host, its path or its words show that it leads to a help page', () => {
    const help = (href: string) => purposeOf(anchor(href, 'Reset your password'))
    expect(help(`https://help.a.example/x/${TOKEN}`)).toBe('other')
    expect(help(at(`/faq/${TOKEN}`))).toBe('other')
    expect(help(`https://a.example.help/${TOKEN}`)).toBe('reset')
    expect(help(at(`/faq?token=${TOKEN}`))).toBe('reset')
    expect(purposeOf(anchor(personal('/go'), 'How to reset your password'))).toBe('other')
  })
})

describe('the words beside a link decide its purpose if its own words do not', () => {
  test('the words beside a URL in plain text decide the purpose of the link', () => {
    const beside = (words: string) => purposeOfBare(`${words}\n${personal('/go')}`)
    expect(beside('To unsubscribe:')).toBe('unsubscribe')
    expect(beside('Reset your password here:')).toBe('reset')
    expect(beside('Read more here:')).toBe('other')
  })

  test('words beside an icon link or a home page’s address do not decide its purpose, unless the link is personal', () => {
    const icon = '<img src="i.png">'
    const words = '<p>Unsubscribe here:</p>'
    expect(purposeOf(words + anchor(at('/go'), icon))).toBe('other')
    expect(purposeOf(words + anchor(personal('/go'), icon))).toBe('unsubscribe')
    expect(purposeOfBare(`Unsubscribe here:\n${at('/')}`)).toBe('other')
    expect(purposeOfBare(`Unsubscribe here:\n${at('/go')}`)).toBe('unsubscribe')
    expect(purposeOfBare(`Unsubscribe here:\n${at('/?u=4711x')}`)).toBe('unsubscribe')
  })

  test('if the path of a link could have two purposes, the words beside the link decide', () => {
    expect(purposeOfBare(`Define your new password:\n${personal('/verify')}`)).toBe('reset')
    expect(purposeOfBare(`To verify your email:\n${personal('/signin')}`)).toBe('verify')
  })

  test('the words beside a link are the last sentence before it on its line', () => {
    expect(purposeOfBare(`Reset your password. Read more: ${personal('/go')}`)).toBe('other')
    expect(purposeOfBare(`Read more. Reset your password: ${personal('/go')}`)).toBe('reset')
  })

  test('if a bare URL is alone on its line, any sentence of the paragraph above may decide the link’s purpose', () => {
    const paragraph =
      'To confirm your email address, use the link\nbelow. You can then see\nyour reports.'
    expect(purposeOfBare(`${paragraph}\n\n${personal('/go')}`)).toBe('verify')
    expect(purposeOfBare(`${paragraph}\n\nYour reports:\n\n${personal('/go')}`)).toBe('other')
  })

  test('the words between two links belong to the link before them', () => {
    const [first, second] = linksOf(null, {
      text: `Reset your password: ${personal('/a')} ${personal('/b')}`,
    })
    expect([first!.purpose, second!.purpose]).toEqual(['reset', 'other'])
  })
})

describe('the words after a link in HTML may show that the link unsubscribes the reader', () => {
  const here = anchor(personal('/go'), 'here')

  test.each([
    `<p>Click ${here} to unsubscribe.</p>`,
    `<p>Click <b>${here}</b> if you no\n longer wish to receive\n${' '.repeat(300)} these emails.</p>`,
    `<p>Apasă ${here} dacă dorești să te dezabonezi de la Newsletter.</p>`,
  ])(
    'if a link and the words before it name no purpose, the rest of the sentence ends mail: %#',
    (html) => {
      expect(purposeOf(html)).toBe('unsubscribe')
    },
  )

  test.each([
    `<p>See ${here}. You can also unsubscribe.</p>`,
    `<p>See ${here}; unsubscribe at any time.</p>`,
    `<p>View it online ${here} | Unsubscribe</p>`,
    `<p>See ${here}</p><p>unsubscribe</p>`,
    `<div>See ${here}</div> unsubscribe`,
    `See ${here} or ${anchor(at('/x'), 'unsubscribe')}`,
    `See <a href="${personal('/go')}">here<a href="${at('/x')}">unsubscribe</a>`,
    `See ${anchor(personal('/go'), 'the offers')} to unsubscribe`,
    `<p>Click ${here} to remove your email address from that account.</p>`,
  ])('the words of another sentence, clause, paragraph or link do not end mail: %#', (html) => {
    expect(purposeOf(html)).toBe('other')
  })

  test.each([
    'if you did not request this password reset.',
    'if you did not verify your email address.',
    'to view your invoice after you log in.',
    'to reset your password.',
  ])('the words after a link give no other purpose: here %s', (words) => {
    expect(purposeOf(`<p>Click ${here} ${words}</p>`)).toBe('other')
  })

  test('the words before a link count more than the words after it', () => {
    expect(purposeOf(`<p>To reset your password click ${here} or unsubscribe.</p>`)).toBe('reset')
  })

  test('when the service looks for the purpose of a link, it reads at most 200 characters after the link', () => {
    const filler = 'la '.repeat(60)
    expect(purposeOf(`<p>See ${here} ${filler}unsubscribe</p>`)).toBe('unsubscribe')
    expect(purposeOf(`<p>See ${here} ${filler}${filler}unsubscribe</p>`)).toBe('other')
  })
})

describe('a link that undoes a registration or a request does not have the purpose of a confirmation', () => {
  const words = 'Confirm your registration:'

  test('if neither the words nor the whole path of a link name a purpose, the last part of the path (for example cancel) decides the purpose', () => {
    expect(purposeOfBare(`${words} ${personal('/register/confirm')}`)).toBe('verify')
    expect(purposeOfBare(`${words} ${personal('/register/cancel')}`)).toBe('other')
    expect(purposeOfBare(`${words} ${personal('/register/cancelled')}`)).toBe('verify')
    const link = anchor(personal('/change/cancel'), 'Confirm your email')
    expect(purposeOf(link)).toBe('verify')
    const unsubscribe = `To unsubscribe from this newsletter: ${anchor(personal('/m/cancel'), 'click here')}`
    expect(purposeOf(unsubscribe)).toBe('unsubscribe')
  })

  test('the query parameters of a link do not decide its purpose', () => {
    const next = '&cancel_url=https://x.example/cancel'
    const words = 'You asked for a new password.'
    expect(purposeOfBare(`${words}\n\n${personal('/reset-password')}${next}`)).toBe('reset')
    expect(purposeOfBare(`${personal('/verify')}&next=/checkout/cancel`)).toBe('verify')
  })

  test('a link to a guide or a public page has the purpose `other`', () => {
    const guide = anchor('https://help.x.example/articles/cancel', 'How to reset your password?')
    expect(purposeOf(guide)).toBe('other')
    expect(purposeOf(anchor(at('/booking/cancel'), 'Sign in'))).toBe('other')
  })
})

describe('the subject of a mail decides the purpose of a link that shows no purpose itself', () => {
  test('if neither the words nor the path of a personal link show its purpose, the mail’s subject decides', () => {
    expect(purposeOfBare(personal('/go'), 'Verify your email')).toBe('verify')
    expect(purposeOfBare(at('/go/ab12'), 'Verify your email')).toBe('other')
    expect(purposeOfBare(personal('/go'), 'Re: Verify your email')).toBe('other')
    expect(purposeOf(anchor(personal('/go'), 'Read the news'), 'Verify your email')).toBe('other')
  })

  test('a bare link with the path verification has the purpose `reset` if the subject announces a reset and no words name another purpose', () => {
    const link = personal('/index.php/verification')
    const mail = (words: string, subject: string) => purposeOfBare(`${words} ${link}`, subject)
    expect(mail('Or open this address:', 'Reset your password')).toBe('reset')
    expect(mail('Or open this address:', 'Запрос на восстановление пароля')).toBe('reset')
    expect(mail('To confirm your address, open', 'Reset your password')).toBe('verify')
    expect(mail('Or open this address:', 'News')).toBe('verify')
  })
})

describe('the service finds the address of each link, in HTML and in plain text', () => {
  test('a backtick around an address in the text of a mail does not belong to the address', () => {
    const [link, ...more] = linksOf(null, { text: `Copy \`${personal('/verify')}\` or ask us.` })
    expect(link).toMatchObject({ href: personal('/verify'), purpose: 'verify' })
    expect(more).toEqual([])
  })

  test('a link to a file of a shared drive has the purpose `other`', () => {
    const at = (host: string) => `https://${host}/d/1AHq11BpG0qP4qtcVQd4m9A6y`
    expect(purposeOf(anchor(at('files.example'), 'Sign in'))).toBe('sign-in')
    expect(purposeOf(anchor(at('drive.google.com'), 'Sign in'))).toBe('other')
  })

  test.each([
    ['neste enlace', 'Para verificar a túa conta tes que premer'],
    ['este enlace', 'Para verificar tu cuenta pulsa en'],
    ['ce lien', 'Pour confirmer votre adresse, suivez'],
    ['questo link', 'Per confermare il tuo indirizzo apri'],
    ['diesen Link', 'Zum Bestätigen Ihrer Adresse öffnen Sie'],
    ['по этой ссылке', 'Чтобы подтвердить адрес, перейдите'],
  ])('the words before a link decide if its text only says `this link`: %s', (text, before) => {
    expect(purposeOf(`<p>${before} ${anchor(personal('/go'), text)}</p>`)).toBe('verify')
  })

  test('a link counts as personal if it has a token of mixed letters and digits, or of 32 letters', () => {
    const reset = (token: string) => purposeOf(anchor(at(`/go/${token}`), 'Reset your password'))
    expect(reset(`${'1'.repeat(15)}a`)).toBe('reset')
    for (const token of ['a'.repeat(32), 'aBcdefghij', 'ABCDEFGHIJ'])
      expect(reset(token)).toBe('reset')
    for (const token of ['a'.repeat(31), 'aaaaaaaaaa', '7c1f3a9be02d%40x']) {
      expect(reset(token)).toBe('other')
    }
  })

  test('a link whose path has only a number never has the purpose sign-in, and words beside it cannot give the purpose verify', () => {
    expect(purposeOf(anchor(at('/topic/4711'), 'Sign in'))).toBe('other')
    expect(purposeOf(anchor(at('/topic/4711a'), 'Sign in'))).toBe('sign-in')
    expect(purposeOf(anchor(at('/topic/4711'), 'Verify your email'))).toBe('verify')
    expect(purposeOfBare(`Verify your email:\n${at('/topic/4711')}`)).toBe('other')
    expect(purposeOfBare(`Reset your password:\n${at('/topic/4711')}`)).toBe('reset')
  })

  test('the service ignores a link whose web address has more than 4,000 characters', () => {
    const ofLength = (length: number) => at('/').padEnd(length, 'a')
    expect(linksOf(anchor(ofLength(4_000), 'x'))).toHaveLength(1)
    expect(linksOf(anchor(ofLength(4_001), 'x'))).toHaveLength(0)
    for (const href of ['mailto:a@a.example', 'ftp://a.example/x', 'javascript:1', 'https://']) {
      expect(linksOf(anchor(href, 'x'))).toEqual([])
    }
  })

  test('a link whose token consists of digits counts as personal if it has at least 16 digits', () => {
    const reset = (digits: number) =>
      purposeOfBare(at(`/go/${'1'.repeat(digits)}`), 'Reset your password')
    expect(reset(16)).toBe('reset')
    expect(reset(15)).toBe('other')
  })

  test('the service reads links only from the href of the element `a`', () => {
    expect(linksOf(`<link href="${at('/x')}"><area href="${at('/x')}">`)).toEqual([])
    expect(linksOf(`<a name="${at('/x')}">x</a>`)).toEqual([])
  })

  test('if the end tag of a link is missing, the link ends where the next link begins or where the mail ends', () => {
    const html = `<a href="${personal('/a')}">Verify your email<a href="${personal('/b')}">Open`
    expect(linksOf(html).map(({ text }) => text)).toEqual(['Verify your email', 'Open'])
  })

  test('a link in plain text ends before the punctuation of its sentence', () => {
    expect(linksOf(null, { text: `See (${at('/x')}), or ${at('/y')}.` })).toMatchObject([
      { href: at('/x') },
      { href: at('/y') },
    ])
  })

  test('a link in plain text keeps a closing bracket if the link itself contains the opening bracket', () => {
    expect(
      linksOf(null, { text: `See ${at('/wiki/Mail_(post)')}, (or ${at('/a_(b)?c=d')}).` }),
    ).toMatchObject([{ href: at('/wiki/Mail_(post)') }, { href: at('/a_(b)?c=d') }])
  })

  test('a link between angle brackets may continue on the next line', () => {
    const href = at(`/verify?id=1&t=${TOKEN}&next=home`)
    const text = `Verify your email: <${href.slice(0, 30)}\r\n  ${href.slice(30, 44)}\r\n${href.slice(44)}>\r\nBye`
    expect(linksOf(null, { text })).toMatchObject([{ href, purpose: 'verify' }])
    for (const open of [
      `<${at('/a')}\nRead it soon>`,
      `<${at('/a')}\n\nBye>`,
      `<${at('/a')}\nBye`,
      `${at('/a')}\nBye>`,
    ])
      expect([open, linksOf(null, { text: open })]).toMatchObject([open, [{ href: at('/a') }]])
    const nested = `<${at('/a?b=c')}\n&next=${at('/d')}>`
    expect(linksOf(null, { text: nested })).toMatchObject([{ href: at(`/a?b=c&next=${at('/d')}`) }])
    const two = `<${at('/a')}\n${at('/b')}>`
    expect(linksOf(null, { text: two })).toMatchObject([{ href: at('/a') }, { href: at('/b') }])
  })

  test('a link in plain text ends before Chinese or Japanese punctuation', () => {
    for (const mark of '\uff0c\u3002\u3001\uff1b\uff1a\uff01\uff1f\uff09\u300d\u300f\u3011\u300b') {
      const text = `\u8bf7\u70b9\u51fb${personal('/v')}${mark}\u5982\u679c\u4e0d\u662f\u60a8\u672c\u4eba`
      expect(linksOf(null, { text })).toMatchObject([{ href: personal('/v') }])
    }
  })

  test('a space in the href of a link is encoded as in a browser, and line ends are removed', () => {
    const [{ href }] = linksOf(
      anchor(` ${at('/v?name=Ada Lovelace&')}\r\n\tt=${TOKEN} `, 'Verify'),
    ) as any
    expect(href).toBe(at(`/v?name=Ada%20Lovelace&t=${TOKEN}`))
  })

  test('a link in square brackets ends at the closing bracket, even if a word follows directly', () => {
    expect(
      linksOf(null, { text: `Reset [${at('/x?a=b')}]If not, see [${at('/y')}].` }),
    ).toMatchObject([{ href: at('/x?a=b') }, { href: at('/y') }])
  })
})

describe('the service limits the links of a mail', () => {
  const many = (count: number, length = 0) =>
    Array.from({ length: count }, (_one, n) => anchor(at(`/p/${n}`).padEnd(length, '-'), 'Read'))

  test('the service reads at most 50 links of a mail, and prefers links that have a purpose', () => {
    const html = [...many(60), anchor(personal('/v'), 'Verify your email')].join('')
    const links = linksOf(html)
    expect(links).toHaveLength(50)
    expect(links.at(-1)!.purpose).toBe('verify')
    expect(links[48]!.href).toBe(at('/p/48'))
  })

  test('all links of a mail together have at most 32,000 characters', () => {
    expect(linksOf(many(9, 4_000).join(''))).toHaveLength(8)
    expect(linksOf([...many(8, 3_999), ...many(9, 4_000).slice(8)].join(''))).toHaveLength(8)
    expect(linksOf([...many(8, 3_999), anchor(at('/y'), 'Read')].join(''))).toHaveLength(8)
  })
})

describe('the URL of a link may show its purpose', () => {
  test.each([
    ['/signup/?email=ada%40a.example&code=Wq7ZtB', 'verify'],
    ['/index.php?action=activate;u=5127;code=b3e90f7d1a', 'verify'],
    ['/login/join?inviteId=67302b9e4c1f8ad05e7b3c61', 'other'],
    ['/mfa/factor/email.php?pass=1&secret=204876', 'sign-in'],
    ['/web/action-auth_totp_mail.action_activate_two_factor', 'other'],
  ])('a link with the URL path %s gets the purpose %s', (path, purpose) => {
    expect(purposeOf(anchor(at(path), 'this page'))).toBe(purpose as 'verify')
  })

  test('a short token in the path identifies one recipient if the path calls it a token', () => {
    const text = `To confirm your account, click this link:\n${at('/token/tXk4Pz/+new/ada')}`
    expect(purposeOfBare(text)).toBe('verify')
  })

  test('a link that stops a sign-in has the purpose `other`', () => {
    const stop = anchor(at('/mfa/factor/email.php?pass=0&secret=204876'), 'stop this login attempt')
    expect(purposeOf(stop)).toBe('other')
  })
})

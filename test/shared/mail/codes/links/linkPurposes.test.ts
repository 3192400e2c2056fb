/**
 * Tests links of real products. The service once gave each of these links a wrong purpose, so the tests must prevent
 * this error. The mail texts around the links were written for these tests.
 */
import { expect, test } from 'bun:test'
import { findLinks } from '../../../../../shared/mail/codes/links/mailLinks.ts'

const TOKEN = '7c1f3a9be02d4485'
const purposeOf = (html: string, { text = '', subject = '' } = {}) =>
  findLinks({ subject, text, html }).map(({ purpose }) => purpose)

test.each([
  [
    'a shop in a store of apps',
    '<a href="https://play.google.com/store/apps/details?id=com.x8bit.kiln">Confirm on Google Play</a>',
  ],
  [
    'the management of a paid plan',
    `<a href="https://a.example/billing/plan?t=${TOKEN}">Manage subscription</a>`,
  ],
  [
    'a list of weak passwords',
    `<a href="https://a.example/tasks?t=${TOKEN}">Review at-risk passwords</a>`,
  ],
  [
    'the end of an account',
    `<a href="https://a.example/verify-delete?t=${TOKEN}">Delete your account</a>`,
  ],
  [
    'the end of a one-time code',
    `<a href="https://a.example/revoke/one-time-code?id=${TOKEN}">End this code</a>`,
  ],
  [
    'an invitation',
    `<a href="https://a.example/auth/verify-token?t=${TOKEN}">Accept invitation</a>`,
  ],
  ['a member to confirm', `<a href="https://a.example/members?t=${TOKEN}">Confirm member</a>`],
  ['an order to confirm', `<a href="https://a.example/orders?t=${TOKEN}">Confirm your order</a>`],
  [
    'an order behind a bare address',
    `<p>Your order was confirmed. See it here:</p><a href="https://a.example/orders/4711?t=${TOKEN}">https://a.example/orders/4711?t=${TOKEN}</a>`,
  ],
  [
    'an icon beside words about mail',
    '<p>Unsubscribe from these emails</p><a href="https://github.com/kiln"><img src="g.png"></a>',
  ],
  [
    'the home page beside words about mail',
    '<p>If you no longer want these emails, tell us at</p><a href="https://a.example">https://a.example</a>',
  ],
  [
    'a page for signing in that fills in the address',
    '<a href="https://a.example/login?email=gareth%40pryce.example">Log in</a>',
  ],
])('a link to %s has the purpose `other`', (_, html) => {
  expect(purposeOf(html)).toEqual(['other'])
})

test('if the path of a sign-in link also says confirm, the mail’s subject decides the link’s purpose', () => {
  const html = `<a href="https://a.example/login/confirm?id=${TOKEN}">Continue</a>`
  expect(purposeOf(html, { subject: 'Confirm your e-mail address' })).toEqual(['verify'])
  expect(purposeOf(html, { subject: 'Your link' })).toEqual(['sign-in'])
  const reset = `<a href="https://a.example/login/confirm-reset?id=${TOKEN}">Continue</a>`
  expect(purposeOf(reset, { subject: 'Confirm your e-mail address' })).toEqual(['reset'])
})

test('a link whose path says only verify or confirm has the purpose `sign-in` if the words before it and the subject announce a sign-in', () => {
  const linkTo = (path: string) => `https://a.example/${path}?token=${TOKEN}`
  const html = (path: string) =>
    `<p>Log in with this link:</p><a href="${linkTo(path)}">${linkTo(path)}</a>`
  expect(purposeOf(html('auth/verify'), { subject: 'Your login link' })).toEqual(['sign-in'])
  expect(purposeOf(html('auth/verify'), { subject: 'Welcome' })).toEqual(['verify'])
  expect(purposeOf(html('confirm'), { subject: 'Finish logging in' })).toEqual(['sign-in'])
  expect(purposeOf(html('confirm-email'), { subject: 'Your login link' })).toEqual(['verify'])
})

test('a bare link with the path verify has the purpose `sign-in` if the subject announces a sign-in and no words name another purpose', () => {
  const link = `https://a.example/auth/verify?token=${TOKEN}`
  const html = (words: string) => `<p>${words}</p><a href="${link}">${link}</a>`
  const subject = 'Your login link'
  expect(purposeOf(html('It is valid for 15 minutes.'), { subject })).toEqual(['sign-in'])
  expect(purposeOf(html('Please confirm your address.'), { subject })).toEqual(['verify'])
  const short = 'https://a.example/auth/verify?c=48Fk2Qz'
  expect(purposeOf(`<p>It works once.</p><a href="${short}">${short}</a>`, { subject })).toEqual([
    'sign-in',
  ])
  const button = `<a href="${link}">Verify your address</a>`
  expect(purposeOf(button, { subject })).toEqual(['verify'])
})

test('a link to a program on the reader’s own machine gets a purpose like any other link', () => {
  const html = `<p>Confirm your address:</p><a href="http://localhost:8080/verify?token=${TOKEN}">Here</a>`
  expect(purposeOf(html)).toEqual(['verify'])
})

test('a link counts as personal to its reader if its path contains a code of capital letters', () => {
  const html = (path: string) => `<a href="https://a.example/${path}">Confirm your email</a>`
  expect(purposeOf(html('confirm-email/MFRGGZDF'))).toEqual(['verify'])
  expect(purposeOf(html('confirm-email/HELP'))).toEqual(['other'])
})

test('the words on a button count more than the words before the same address in the plain text of the mail', () => {
  const href = `https://a.example/requests?t=${TOKEN}`
  expect(
    purposeOf(`<a href="${href}">Review request</a>`, {
      text: `Somebody asks to log in with a new device: ${href}`,
    }),
  ).toEqual(['other'])
})

test.each([
  ['unsubscribe', `<a href="https://a.example/s?t=${TOKEN}">Manage email preferences</a>`],
  ['verify', `<a href="https://a.example/x?t=${TOKEN}">Confirm subscription</a>`],
  [
    'verify',
    `<p>To confirm your address, open</p><a href="https://a.example/x?t=${TOKEN}">https://a.example/x?t=${TOKEN}</a>`,
  ],
  ['reset', `<a href="https://a.example/auth/recovery?t=${TOKEN}">Continue</a>`],
  ['reset', `<a href="https://a.example/wp-login.php?action=rp&key=${TOKEN}">Continue</a>`],
  [
    'verify',
    `<p>Confirm your address:</p><a href="https://a.example/login-actions/action-token?key=${TOKEN}">Continue</a>`,
  ],
  ['reset', `<a href="https://a.example/x?t=${TOKEN}">Choose a new password</a>`],
  ['reset', `<a href="https://a.example/auth/v1/verify?token=${TOKEN}&type=recovery">Continue</a>`],
  [
    'sign-in',
    `<a href="https://a.example/v1/verify?ticket=${TOKEN}&type=signinPasswordless">Continue</a>`,
  ],
  [
    'verify',
    `<a href="https://a.example/v1/verify?ticket=${TOKEN}&type=emailConfirmChange">Change email</a>`,
  ],
  [
    'unsubscribe',
    '<p>To adjust what we send, visit</p><a href="https://a.example/settings/notifications">https://a.example/settings/notifications</a>',
  ],
  [
    'sign-in',
    `<p>Verify</p><a href="https://a.example/signin/verify?k=${TOKEN}">https://a.example/signin/verify?k=${TOKEN}</a>`,
  ],
  [
    'verify',
    `<p>Click in order to activate your account:</p><a href="https://a.example/login/callback/v/${TOKEN}">https://a.example/login/callback/v/${TOKEN}</a>`,
  ],
  [
    'verify',
    `<a href="https://a.example/confirm-email/MTg3:1tQm4K:vR7xN2cLq0ZpYbE9sHdJ/">Перейти</a>`,
  ],
  ['unsubscribe', `<a href="https://a.example/s/${TOKEN}?manage=true">Dona't de baixa</a>`],
  ['sign-in', `<a href="https://a.example/mfa/otp/verify?code=83914052">Verify</a>`],
  ['sign-in', `<a href="https://a.example/#/login?verify=${TOKEN}">Open</a>`],
  [
    'verify',
    `<a href="https://a.example/auth/9f27c1a8b04e/subscribe/news?email=ann%40b.example">Sí</a>`,
  ],
  [
    'unsubscribe',
    `<a href="https://a.example/usercp.php?action=removesubscription&tid=40917">Open</a>`,
  ],
  [
    'reset',
    '<a href="https://a.example/reset-password?token=$2b$10$Qx7TnZk2Vw9sLc4RmHdYeO">Open</a>',
  ],
  [
    'reset',
    '<p>Define your new password</p><a href="https://a.example/verify?code=T4K90ZB2">here</a>',
  ],
  ['verify', `<a href="https://a.example/signup/${TOKEN}">Complete your registration</a>`],
  ['reset', `<a href="https://docs.a.example/password/reset/${TOKEN}${TOKEN}">Continue</a>`],
  ['reset', `<a href="https://a.example/account/lost_password?token=${TOKEN}">Continue</a>`],
] as const)('a link that looks like a real product’s link has the purpose %s', (purpose, html) => {
  expect(purposeOf(html)).toEqual([purpose])
})

test('a link whose path or query changes the mail address has the purpose `verify`', () => {
  const forum = `https://a.example/profile.php?action=change_email&id=4&key=${TOKEN}`
  expect(purposeOf('', { text: `Visit this page:\n${forum}` })).toEqual(['verify'])
  const type = `<a href="https://a.example/auth?token=${TOKEN}&type=email_change">Open</a>`
  expect(purposeOf(type)).toEqual(['verify'])
})

test('if the path of a link to a blog contains a token, the link counts as personal to its reader', () => {
  const href = `https://blog.example/reset_password/task:login.reset/token:${TOKEN}`
  expect(purposeOf(`<a href="${href}">Open</a>`)).toEqual(['reset'])
})

test('a link to mail settings has the purpose `unsubscribe`, and a confirmation link below the same path has `verify`', () => {
  for (const path of [
    'home/account/edit#notifications',
    'ada/emails/',
    `post/4/subscription?token=${TOKEN}`,
  ])
    expect(purposeOf('', { text: `See:\nhttps://a.example/${path}` })).toEqual(['unsubscribe'])
  for (const path of [
    `settings/notifications/412/verify/${TOKEN}`,
    `validate-profile-email?token=${TOKEN}`,
    `confirm-account-email?token=${TOKEN}`,
  ])
    expect(purposeOf('', { text: `See:\nhttps://a.example/${path}` })).toEqual(['verify'])
})

test('a link that approves a sign-in attempt has the purpose `sign-in`', () => {
  for (const words of ['Verify Login', 'Approve this sign-in', 'Authorize the new login'])
    expect(purposeOf(`<a href="https://a.example/authorize?t=${TOKEN}">${words}</a>`)).toEqual([
      'sign-in',
    ])
})

test('a link to a page where the reader types a code has the purpose `other`, and the link that contains the code has `verify`', () => {
  const page = 'https://a.example/edit.php?ID=1842'
  const text = `Click to confirm:\n${page}&CONFIRM_CODE=Kp3vRt8Z\nOr type your confirmation code here:\n${page}`
  expect(purposeOf('', { text })).toEqual(['verify', 'other'])
})

test('a link that completes a sign-in has the purpose `sign-in`, and a link that reports a sign-in has the purpose `other`', () => {
  const page = (name: string) => `Sjá: https://a.example/${name}?uid=${TOKEN}&code=${TOKEN}`
  expect(purposeOf('', { text: page('complete_signin') })).toEqual(['sign-in'])
  expect(purposeOf('', { text: page('report_signin') })).toEqual(['other'])
})

test.each([
  'Vahvista kirjautuminen',
  'Bekräfta inloggning',
  'Login bestätigen',
  'Confirmer la connexion',
  'Confirmar inicio de sesión',
  'Conferma accesso',
  'Potwierdź logowanie',
  'Подтвердить вход',
])('a link that allows a sign-in has the purpose `sign-in`: %s', (text) => {
  const html = `<a href="https://a.example/x?t=${TOKEN}">${text}</a>`
  expect(purposeOf(html)).toEqual(['sign-in'])
})

test('a link with the German words for the confirmation of a registration has the purpose `verify`', () => {
  const html = `<a href="https://a.example/x?t=${TOKEN}">Anmeldung bestätigen</a>`
  expect(purposeOf(html)).toEqual(['verify'])
})

const RESET_REQUEST = 'We received a request to reset your password. Open this page:'
test.each([
  '/email/reset/9f20ab',
  '/email/reset/Rk27bT',
  '/password/reset/x7k2q',
  '/r/482913',
  '/recover/318',
])(
  'in a mail about a password, a link with the short token of %s resets the password and is sensitive',
  (path) => {
    const href = `https://a.example${path}`
    const subject = 'Reset your password'
    const html = `<p>${RESET_REQUEST}</p><a href="${href}">Choose a new password</a>`
    const found = { href, purpose: 'reset', sensitive: true } as const
    expect(findLinks({ subject, text: '', html })).toMatchObject([found])
    const text = `${RESET_REQUEST}\n\n${href}\n`
    expect(findLinks({ subject, text, html: null })).toMatchObject([found])
  },
)

test.each([
  'https://a.example/docs/email/reset/overview',
  'https://a.example/docs/email/reset/v2',
  'https://a.example/help/reset/12',
  'https://a.example/password/reset/step/2',
  'https://docs.a.example/password/reset/overview',
  'https://a.example/help/password/reset/step1',
  'https://a.example/password/reset/overview',
  'https://help.a.example/articles/4417-reset-password',
])('a page about resetting a password has the purpose `other`: %s', (href) => {
  const other = { href, purpose: 'other', sensitive: false } as const
  const subject = 'Reset your password'
  const html = `<p>${RESET_REQUEST}</p><a href="${href}">How to reset your password</a>`
  expect(findLinks({ subject, text: '', html })).toMatchObject([other])
  const text = `${RESET_REQUEST}\n\n${href}\n`
  expect(findLinks({ subject, text, html: null })).toMatchObject([other])
})

test('a link to a registration page has the purpose `verify` if its URL contains a key', () => {
  const href = (page: string) => `https://a.example/registration/${page}?key=${TOKEN}&language=sq`
  expect(purposeOf('', { text: `Shihni ${href('index.html')} ju lutem` })).toEqual(['verify'])
  expect(purposeOf('', { text: `Shihni ${href('news/index.html')} ju lutem` })).toEqual(['other'])
})

test('a link that resets the address of a mailbox does not count as a link that resets a password', () => {
  const href = 'https://a.example/email/reset/9f20ab'
  const html = `<p>You changed your address.</p><a href="${href}">Undo the change</a>`
  const [link] = findLinks({ subject: 'Your new mail address', text: '', html })
  expect(link).toMatchObject({ href, sensitive: false })
})

test.each([
  ['unsubscribe', 'Hadia iha ne’e: https://a.example/admin/account/#tab-notifications', 'Redasaun'],
  [
    'unsubscribe',
    `Да откажете претплату, кликните на линк испод:\n\nhttps://a.example/a?token=${TOKEN}`,
    '',
  ],
  [
    'unsubscribe',
    `Abonementu varat atcelt jebkurā laikā, noklikšķinot šeit:\n\nhttps://a.example/a?token=${TOKEN}`,
    '',
  ],
  [
    'unsubscribe',
    `Fil de commentaires :\n\nhttps://a.example/comments/mute/Ii4yLn:1tsQ8x:${TOKEN}`,
    '',
  ],
  [
    'reset',
    `Til að núllstilla aðgangsorðin þín, farðu á https://a.example/users.php?ticket=${TOKEN}`,
    '',
  ],
  [
    'reset',
    `Klik op onderstaande link.\n\nhttps://community.a.example/changepassword?u=318&c=${TOKEN}`,
    '',
  ],
  ['reset', `Lean ris a’ cheangal seo:\n\nhttps://a.example/lostpass?verify=${TOKEN}`, ''],
  [
    'reset',
    `Please confirm this request:\nhttps://a.example/index.php?confirm=${TOKEN}`,
    'Your new password',
  ],
] as const)(
  'a link without words of its own has the purpose `%s`: %s',
  (purpose, text, subject) => {
    expect(purposeOf('', { text, subject })).toEqual([purpose])
  },
)

test.each([
  ['verify', 'https://a.example/account?verify=812!Vt6Qz0bXr9Kc', 'Confirm Email Address'],
  ['sign-in', 'https://a.example/login/link?user=p&expires=1796040000&hash=Xk9%2Bq2TbW', 'உள்நுழைக'],
  [
    'other',
    `https://a.example/verification-requested?token=${TOKEN}`,
    'Request a new verification',
  ],
  ['reset', 'https://a.example:8083/reset/?action=code&user=rahim', 'Choose a new password'],
  ['verify', 'https://blog.a.example/index.php?/opt-in/5c0e8b1f72d94a36e1', 'Потвърдете'],
  ['other', `https://a.example/verification-requested?token=${TOKEN}`, 'Begär ny verifiering'],
  ['reset', `https://a.example/password_double_opt.php?action=verified&key=${TOKEN}`, 'Open'],
  ['sign-in', `https://a.example/Home?hash=${TOKEN}&auth_method=Email`, 'Geavat liŋkka'],
  ['verify', 'https://blog.a.example/login.php?reminderKey=Qm7vLz4TnB2xKd9R', 'Activate NOW'],
])('a link has the purpose `%s` by its address and its words: %s %s', (purpose, href, words) => {
  expect(purposeOf(`<a href="${href}">${words}</a>`)).toEqual([purpose as 'other'])
})

test.each([
  ['Սեղմիր այստեղ', 'ծանուցումների կարգավորումները փոխելու համար'],
  ['Incarca inoghe', 'pro mudare sas impostatziones de notìfica tuas'],
])(
  'a link that says only `%s` has the purpose `unsubscribe` before words about mail settings',
  (words, after) => {
    const html = `<p><a href="https://a.example/user/edit">${words}</a> ${after}</p>`
    expect(purposeOf(html)).toEqual(['unsubscribe'])
  },
)

test('if the words or the path of one link in a mail name a reset, no other link of the mail has the purpose `reset`', () => {
  const text = `Your iD is https://id.example/0000-0002-1825-0097\n\nReset it here:\n\nhttps://id.example/reset-password/${TOKEN}\n`
  expect(purposeOf('', { text, subject: 'Your new password' })).toEqual(['other', 'reset'])
})

test('a link that confirms an address stays a confirmation beside words about a lost password', () => {
  const text = `To confirm that the account is yours and to recover it if you lose your password, open this link:\n\nhttps://w.example/wiki/Special:ConfirmEmail/${TOKEN}a4c9\n\nIf the account is not yours, open this link to cancel the confirmation:\n\nhttps://w.example/wiki/Special:InvalidateEmail/${TOKEN}b7d1\n`
  expect(purposeOf('', { text })).toEqual(['verify', 'other'])
})

test('a page where the reader types the code of another link has the purpose `other`', () => {
  const page = 'https://f.example/index.php?action=activate;u=2417'
  const text = `Open this link to activate your account:\n${page};code=4f9a1c07be\n\nIf it fails, activate your account here with the code: ${page}\n`
  expect(purposeOf('', { text })).toEqual(['verify', 'other'])
})

test.each([
  ['。', 'パスワードの変更は不要です。メールアドレスを確認してください：'],
  ['।', 'पासवर्ड बदलने की ज़रूरत नहीं है। अपने ईमेल की पुष्टि करें: '],
  ['۔', 'پاس ورڈ کی ضرورت نہیں۔ اپنے ای میل کی تصدیق کریں: '],
])('the sentence before a link begins after `%s`: %s', (_, words) => {
  const text = `${words}https://a.example/u/${TOKEN}\n`
  expect(purposeOf('', { text })).toEqual(['verify'])
})

test('a Yiddish sentence beside a plain link offers to end mail', () => {
  const text = 'זיך אומאבאנירן, זייט אזוי גוט באזוכט https://a.example/wiki/Special:Signup.'
  expect(purposeOf('', { text })).toEqual(['unsubscribe'])
})

test('the words of a link decide its purpose even after a sentence such as "if this wasn’t you"', () => {
  const href = 'https://a.example/reset-password?token=Vq8Lk2RzX0mPwT5yHdCn3JsB'
  const html = `<p>If this wasn't you, act now:<br><a href="${href}">Click here to reset your password</a></p>`
  expect(findLinks({ subject: 'New login', text: '', html })).toMatchObject([
    { purpose: 'reset', sensitive: true },
  ])
})

test('a link that pays for a subscription again verifies nothing', () => {
  const text =
    'To reactivate the subscription now, pay here: https://a.example/order-pay/20418/?key=wc_order_8hQ2mZk1VbLx0'
  expect(findLinks({ subject: 'Automatic payment failed', text, html: null })).toMatchObject([
    { purpose: 'other' },
  ])
})

test('the words of a link tell its purpose, even if they name the host of the link', () => {
  const href = `https://shop.example/auth/verify?token=${TOKEN}`
  expect(purposeOf(`<a href="${href}">Sign in to shop.example →</a>`)).toEqual(['sign-in'])
  expect(purposeOf(`<a href="${href}">${href}</a>`)).toEqual(['verify'])
})

test('a link that reports a stranger’s sign-in signs nobody in', () => {
  const text = `A login attempt was made:\n\nhttps://a.example/actions/ReportSuspiciousLogin?stoken=${TOKEN}`
  expect(purposeOf('', { text, subject: 'Access from a new device' })).toEqual(['other'])
})

/**
 * Lists test mails that were written one by one. No two of them have the same wording or layout.
 */
import type { CodeMail } from './build.ts'

const withCode = (id: string, subject: string, text: string, ...codes: string[]): CodeMail => ({
  id,
  subject,
  text,
  codes,
  links: {},
})
const withoutCode = (id: string, subject: string, text: string): CodeMail => ({
  id,
  subject,
  text,
  codes: [],
  links: {},
})

const page = (id: string, subject: string, html: string, ...codes: string[]): CodeMail => ({
  id,
  subject,
  html,
  codes,
  links: {},
})

export const singles: CodeMail[] = [
  withCode(
    'single-2fa',
    'Two-factor code',
    'Hi Ada,\n\n2FA code: 048213\n\nRequested from Berlin at 18:45 UTC.\n',
    '048213',
  ),
  withCode(
    'single-pin',
    'Your PIN',
    'Your PIN for the locker is 4829. Enter it on the keypad at locker 12 before 31 March 2026.',
    '4829',
  ),
  withCode(
    'single-device',
    'Authorize a device',
    'Go to the activation page and enter the device code WDJB-MJHT. It is valid for 15 minutes.',
    'WDJB-MJHT',
  ),
  withCode(
    'single-backup',
    'Sign-in token',
    'Your login token: k7x2-9fqd\nToken is valid until 19:00.',
    'k7x2-9fqd',
  ),
  withCode(
    'single-otp',
    'OTP',
    'Dear customer, 739204 is the OTP for your transaction of INR 4,829.00 on card ending 1207. Do not share it. Bank helpline 1800 266 4332.',
    '739204',
  ),
  withCode(
    'single-late',
    'Hello again',
    'Hello,\n\nYou are receiving this since you tried to sign in at 10:42 on 12/03/2026 from 203.0.113.9.\n\nSecurity code\n\n  90 41 22\n\nThanks,\nThe accounts team\n',
    '904122',
  ),
  withCode(
    'single-html-like',
    'Access code',
    'ACCESS CODE: [ 7 7 1 0 2 9 ]\n\nCase number 20418',
    '771029',
  ),
  withCode(
    'single-reset-code',
    'Password reset code',
    'We received a request to reset your password. Enter the following password reset code: 60418293',
    '60418293',
  ),
  withCode(
    'single-name',
    'Ada, 5 5 1 8 2 0 is your confirmation code',
    'See the subject of this mail. The ZIP you gave is 94016.',
    '551820',
  ),
  withCode(
    'single-quote',
    'Verify your identity',
    '> Verification code\n\n“330914”\n\nThis code expires in 600 seconds.',
    '330914',
  ),
  withCode(
    'single-both',
    'Two codes',
    'Your email code is 118273. Your phone code was sent to +1 (555) 010-9942.',
    '118273',
  ),
  withCode(
    'single-hyphen',
    'Slack-like',
    'Confirmation code\n\nQ4T-9ZK\n\nIf you did not request this, ignore this mail. 500 Howard Street, CA 94105',
    'Q4T-9ZK',
  ),
  withCode('single-year-like', 'Login code', 'Login code: 2026. Expires at 18:55.', '2026'),
  withCode(
    'single-emoji',
    '🔐 Your code',
    '🔑 Your one-time code ➜ 482 019 ⏰ 10 minutes',
    '482019',
  ),
  page(
    'single-h1-only',
    'Log in to Example',
    '<body><h1>Log in</h1><p>Paste this temporary login code:</p><p><code>lumen-otter-quay</code></p><p>Or <a href="https://x.example">open</a></p></body>',
    'lumen-otter-quay',
  ),
  page(
    'single-colon-next',
    'Sign in',
    '<p>Sign-in code:</p><p>&nbsp;</p><p style="font-weight:700">5 0 1 7 2 8</p><p>Order history is at your account.</p>',
    '501728',
  ),
  page(
    'single-flex',
    'Verification',
    '<div>Verification code</div><div style="display:flex"><p>8</p><p>8</p><p>0</p><p>4</p><p>1</p><p>5</p></div><div>10 min</div>',
    '880415',
  ),
  page(
    'single-upper',
    'VERIFY',
    '<center>VERIFICATION CODE<br><font size="6">HK29QP</font><br>Invoice 2026-118 unaffected</center>',
    'HK29QP',
  ),
  withoutCode(
    'single-exit',
    'Build 20418 failed',
    'Job 482913 failed with exit code 137 on commit 4f2a91c. Error code: 50012. HTTP status code 502. See PR #4821.',
  ),
  withoutCode(
    'single-zip',
    'Your address',
    'Postal code: 94016. Country code: 49. Area code 030. Sort code 20-48-29. Bar code 4006381333931.',
  ),
  withoutCode(
    'single-meeting',
    'Meeting tomorrow',
    'Room 4829 at 14:30 on 12 March 2026. Dial +1 646 558 8656. The QR code at the door is new.',
  ),
  withoutCode(
    'single-dress',
    'Dress code',
    'Dress code: smart casual. Doors 1900, dinner 2000, taxi 7.30 pm. Tickets 4 x 48 EUR.',
  ),
  withoutCode(
    'single-source',
    'Code review',
    'I read your code in line 48213 and left 12 comments. Please verify release 2026.3.1 before Friday.',
  ),
  withoutCode(
    'single-bank',
    'Account statement',
    'Account number 1234567890, sort code 12-34-56, SWIFT code BYLADEM1001, balance 4,829.13 EUR on 2026-03-12.',
  ),
  withoutCode(
    'single-sku',
    'Back in stock',
    'Product code 482913 is back. Use coupon code LAMP10 or gift card code GC48-2913-XKQP at checkout.',
  ),
  withoutCode(
    'single-agree',
    'Verification complete',
    'Your identity was verified on 12 March 2026 at 18:45. Reference 48291305. Nothing else is needed.',
  ),
  withoutCode(
    'single-expired',
    'Your code has expired',
    'The verification code we sent has expired. Request another in the app. Help: 0800 482913.',
  ),
  withoutCode(
    'single-2fa-on',
    'Two-factor authentication is on',
    'From now on we ask for a code when you sign in. Changed at 18:45 on 12.03.2026 from 198.51.100.7, version 4.8.29.',
  ),
  withoutCode(
    'single-hash',
    'Deploy',
    'Deployed a1b2c3d4 to production, request id 7f3c-4829, took 48291 ms. Colour #FF8800.',
  ),
  withoutCode(
    'single-poll',
    'Results',
    '1. Lisbon 482 votes\n2. Porto 913 votes\n3. Faro 204 votes\nTotal 1599',
  ),
  withoutCode(
    'single-tax',
    'Tax form',
    'Tax code 1257L. National insurance QQ 12 34 56 C. Form 1099-K for 2025. Confirm your details by 31/01/2026.',
  ),
  withoutCode(
    'single-sign',
    'Please sign',
    'Contract 2026-0048 is ready for your signature. Envelope id 4829-13AB-77. Sign in to read it.',
  ),
]

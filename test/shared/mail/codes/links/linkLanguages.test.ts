/**
 * Tests the words of link buttons in languages that few products use. Only these words can decide the purpose of a
 * link, because the paths of the links do not show it.
 */
import { expect, test } from 'bun:test'
import { findLinks } from '../../../../../shared/mail/codes/links/mailLinks.ts'

const purposeOf = (words: string) =>
  findLinks({
    subject: '',
    text: '',
    html: `<a href="https://a.example/r/7c1f3a9be02d4485">${words}</a>`,
  })[0]?.purpose

const BUTTONS = {
  reset: [
    ['Afrikaans', 'Herstel jou wagwoord'],
    ['Catalan', 'Restableix la contrasenya'],
    ['Welsh', 'Ailosod eich cyfrinair'],
    ['Estonian', 'Lähtestage oma parool'],
    ['Basque', 'Berrezarri pasahitza'],
    ['Icelandic', 'Endurstilla lykilorð'],
    ['Lithuanian', 'Atstatyti slaptažodį'],
    ['Serbian', 'Промени лозинку'],
    ['Croatian', 'Promijenite lozinku'],
    ['Slovenian', 'Ponastavite geslo'],
    ['Albanian', 'Rivendosni fjalëkalimin'],
    ['Georgian', 'პაროლის აღდგენა'],
    ['Armenian', 'Վերականգնել գաղտնաբառը'],
    ['Persian', 'بازنشانی رمز عبور'],
    ['Urdu', 'پاس ورڈ تبدیل کریں'],
    ['Tamil', 'கடவுச்சொல்லை மீட்டமை'],
    ['Malay', 'Tetapkan semula kata laluan'],
    ['Swahili', 'Weka Upya Nenosiri'],
    ['Amharic', 'የይለፍ ቃል ዳግም አስጀምር'],
  ],
  verify: [
    ['Lithuanian', 'Patvirtinkite savo el. pašto adresą'],
    ['Latvian', 'Apstiprināt e-pastu'],
    ['Estonian', 'Kinnitage oma konto'],
    ['Icelandic', 'Staðfestu netfangið þitt'],
    ['Slovenian', 'Potrdi e-pošto'],
    ['Serbian', 'Потврдите е-пошту'],
    ['Azerbaijani', 'Hesabınızı təsdiq edin'],
    ['Hindi', 'ईमेल पता सत्यापित करें'],
    ['Urdu', 'ای میل ایڈریس کی تصدیق کریں'],
    ['Hebrew', 'אמת את כתובת הדוא"ל שלך'],
    ['Malay', 'Sahkan akaun anda'],
    ['Swahili', 'Thibitisha akaunti yako'],
    ['Lao', 'ຢືນ\u200bຢັນ\u200bທີ່\u200bຢູ່'],
  ],
  'sign-in': [
    ['Catalan', 'Inicia la sessió'],
    ['Lithuanian', 'Prisijungti'],
    ['Latvian', 'Ieiet'],
    ['Croatian', 'Prijava'],
    ['Bulgarian', 'Влизане'],
    ['Georgian', 'შესვლა'],
    ['Kazakh', 'Кіру'],
    ['Hindi', 'लॉग इन करें'],
    ['Persian', 'ورود'],
    ['Basque', 'Hasi saioa'],
  ],
  unsubscribe: [
    ['Catalan', 'Cancel·la la subscripció'],
    ['Czech', 'Zrušit odběr'],
    ['Croatian', 'Otkaži pretplatu'],
    ['Hebrew', 'ביטול מינוי'],
    ['Belarusian', 'Адпісацца'],
    ['Danish', 'Notifikationsindstillinger'],
    ['Polish', 'Ustawienia powiadomień'],
    ['Chinese', '取消訂閱'],
  ],
} as const

const rows = Object.entries(BUTTONS).flatMap(([purpose, buttons]) =>
  buttons.map(([language, words]) => [language, words, purpose] as const),
)

test.each(rows)(
  'in the language %s the button words `%s` give a link the purpose `%s`',
  (_, words, purpose) => {
    expect<string | undefined>(purposeOf(words)).toBe(purpose)
  },
)

/**
 * Makes texts that a reader (a function that reads untrusted text) once read slowly, or whose length is close to the
 * maximum for a reader.
 */
const repeated =
  (text: string) =>
  (length: number): string =>
    text.repeat(Math.max(1, Math.floor(length / text.length)))

export const SLOW_HTML = {
  'elements in elements': repeated('<b>'),
  'hidden elements': repeated('<div style="color:#fff;display:none">x</div>'),
  'rules with ancestors': (length: number) =>
    `<style>${repeated('.h .h .h .h b{color:red}')(length / 4)}</style>${repeated('<div class=h>')(length / 4)}${repeated('<b>x</b>')(length / 2)}`,
  attributes: (length: number) => `<a ${repeated('x=1 ')(length)}>`,
  'open tags': repeated('<'),
  'closing tags': repeated('</b>'),
  'open comments of a style': (length: number) => `<style>${repeated('/*')(length)}</style>`,
}

export const CODES = {
  digits: repeated('0123456789'),
  'spaced digits': repeated('1 2 3 4 5 '),
  'lines of codes': repeated('Your code is 482913.\n'),
  'one line of codes': repeated('Your code is 482913. '),
  'letters without an end': repeated('code'),
  'words with dashes': repeated('lumen-otter-'),
  promo: repeated(`${'promo'.repeat(50)} 482913\n`),
  compounds: repeated(`${'vahvistusturvapromo'.repeat(9)} ${'4829 '.repeat(40)}\n`),
  'an address': (length: number) => `https://${repeated('a')(length)}`,
  brackets: repeated('[ '),
}

export const ADDRESSES_AGAIN = repeated('a@b.c ')

/** Holds layouts of test mails with numbers but without a code. */
import { anchor, escaped, FOOTER_TEXT, type Layout, page, paragraph, site } from './build.ts'

const rows = (lines: readonly (readonly string[])[]) =>
  `<table border="1">${lines.map((cells) => `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`).join('')}</table>`

export const plainLayouts: Layout[] = [
  {
    name: 'order-table',
    make: (v, x) => ({
      subject: x.fill(`${v.brand} {o}`),
      html: page(
        v,
        `${paragraph(x.fill(v.order))}${rows([
          ['SKU 482913', '2', '24,90'],
          ['EAN 4006381333931', '1', '199,00'],
          ['', '', '248,80'],
        ])}${paragraph(FOOTER_TEXT)}`,
      ),
      codes: [],
      links: {},
    }),
  },
  {
    name: 'order-plain',
    make: (v, x) => ({
      subject: v.brand,
      text: `${x.fill(v.order)}\n\n1 x Lamp 48213   49,00\n2 x Desk 90412  480,00\n\n${x.fill(v.shipping)}\n${FOOTER_TEXT}\n`,
      codes: [],
      links: {},
    }),
  },
  {
    name: 'parcel',
    make: (v, x) => {
      const href = 'https://parcel.example/track/482913057712'
      return {
        subject: x.fill(v.shipping),
        html: page(
          v,
          `${paragraph(x.fill(v.shipping))}<p style="font-size:28px"><b>482913057712</b></p>${anchor(href, v.help)}`,
        ),
        codes: [],
        links: { [href]: 'other' },
      }
    },
  },
  {
    name: 'invoice',
    make: (v, x) => ({
      subject: x.fill(v.invoice),
      text: `${x.fill(v.invoice)}\n\nIBAN DE02 1203 0000 0000 2020 51\nBIC BYLADEM1001\nVAT DE 136695976\n${x.fill('{p}')}\n\n${FOOTER_TEXT}\n`,
      codes: [],
      links: {},
    }),
  },
  {
    name: 'new-device',
    make: (v, x) => ({
      subject: v.brand,
      html: page(
        v,
        `${paragraph(x.fill(v.alert))}${paragraph(x.fill(v.advice))}<p style="color:#999999">#482913 · 52.5200, 13.4050</p>`,
      ),
      codes: [],
      links: {},
    }),
  },
  {
    name: 'new-device-plain',
    make: (v, x) => ({
      subject: v.brand,
      text: `${x.fill(v.alert)}\n\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101\nPort 51820\n${v.help}: ${site(v)}/help/4829\n`,
      codes: [],
      links: { [`${site(v)}/help/4829`]: 'other' },
    }),
  },
  {
    name: 'voucher-box',
    make: (v, x) => ({
      subject: x.fill(v.promo),
      html: page(
        v,
        `${paragraph(x.fill(v.promo))}<div style="border:2px dashed #482913;font-size:28px">SPRING20</div>${paragraph(FOOTER_TEXT)}`,
      ),
      codes: [],
      links: {},
    }),
  },
  {
    name: 'ticket',
    make: (v, x) => ({
      subject: x.fill(`Re: ${v.ticket}`),
      text: `##- 482913 -##\n\n${x.fill(v.ticket)}\n\nv2.14.0 (build 20418) · HTTP 404 · 0x80070005\n${x.fill(v.advice)}\n`,
      codes: [],
      links: {},
    }),
  },
  {
    name: 'fraud-advice',
    make: (v, x) => ({
      subject: v.brand,
      html: page(
        v,
        `<h2>${escaped(v.brand)}</h2>${paragraph(x.fill(v.advice))}${paragraph(v.expires)}${paragraph(FOOTER_TEXT)}`,
      ),
      codes: [],
      links: {},
    }),
  },
  {
    name: 'journey',
    make: (v, x) => ({
      subject: x.fill(v.booking),
      text: `${x.fill(v.booking)}\n\nLH 2048  FRA 06:45 - LIS 09:10\nTerminal 2, Gate 48, 12A\nE-Ticket 220-4829130571\n${x.fill('{p}')}\n`,
      codes: [],
      links: {},
    }),
  },
  {
    name: 'journey-box',
    make: (v, x) => ({
      subject: v.brand,
      html: page(
        v,
        `${paragraph(x.fill(v.booking))}<p style="font-size:32px;letter-spacing:4px"><b>QX7P2L</b></p>${paragraph(x.fill(v.order))}${paragraph(FOOTER_TEXT)}`,
      ),
      codes: [],
      links: {},
    }),
  },
  {
    name: 'figures',
    make: (v, x) => ({
      subject: `${v.brand} 2025/2026`,
      html: page(
        v,
        `${rows([
          ['2023', '2024', '2025', '2026'],
          ['48213', '50994', '61002', '72940'],
          ['12 %', '8 %', '19 %', '3,4 %'],
        ])}${paragraph(x.fill(v.invoice))}<p style="color:#a1b2c3">#A1B2C3 / rgb(48,29,13)</p>`,
      ),
      codes: [],
      links: {},
    }),
  },
  {
    name: 'letter-of-a-person',
    make: (v, x) => ({
      subject: v.help,
      text: `${x.fill(v.ticket)}\n\n${x.fill('{d}, 14:30, {tel}, {z}')}\n\n${v.brand}\n${FOOTER_TEXT}\n`,
      codes: [],
      links: {},
    }),
  },
  {
    name: 'many-numbers',
    make: (v, x) => ({
      subject: x.fill(`${v.ticket}`),
      text: [v.order, v.shipping, v.invoice, v.alert, v.promo, v.booking]
        .map((line) => `- ${x.fill(line)}`)
        .join('\n'),
      codes: [],
      links: {},
    }),
  },
]

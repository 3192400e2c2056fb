/**
 * Holds test replies with sign-offs, and test replies with text that programs, virus scanners and lawyers add. Readers
 * disagree whether such added text is part of the reply, so docs/contract.md decides.
 */
import type { ReplyMail } from './build.ts'

type Row = [id: string, text: string, expected: string, ...alt: string[]]

const rows: Row[] = [
  [
    'avast-en',
    'The bill is paid.\n\n\n---\nThis email has been checked for viruses by Avast antivirus software.\nwww.avast.com\n',
    'The bill is paid.',
  ],
  [
    'avast-de',
    'Die Rechnung ist bezahlt.\n\n-- \nDiese E-Mail wurde von Avast-Antivirussoftware auf Viren geprüft.\nwww.avast.com',
    'Die Rechnung ist bezahlt.',
  ],
  [
    'virus-free',
    'The bill is paid.\n\nVirus-free. www.avast.com\n<https://www.avast.com/sig-email?utm_medium=email>\n<#DAB4FAD8-2DD7-40BB-A1B8-4E2AA1F9FDF2>\n\nOn Tue, Mar 3, 2026 at 9:14 AM Laura <laura@print.example> wrote:\n\n> Did you pay?\n',
    'The bill is paid.',
    'The bill is paid.\n\nVirus-free. www.avast.com\n<https://www.avast.com/sig-email?utm_medium=email>\n<#DAB4FAD8-2DD7-40BB-A1B8-4E2AA1F9FDF2>',
  ],
  [
    'disclaimer-es',
    'El contrato está firmado.\n\nEste mensaje y sus archivos adjuntos son confidenciales y van dirigidos exclusivamente a su destinatario. Si lo ha recibido por error, elimínelo.',
    'El contrato está firmado.',
    'El contrato está firmado.\n\nEste mensaje y sus archivos adjuntos son confidenciales y van dirigidos exclusivamente a su destinatario. Si lo ha recibido por error, elimínelo.',
  ],
  [
    'disclaimer-it',
    'Il contratto è firmato.\n\nLe informazioni contenute in questo messaggio sono riservate e destinate esclusivamente al destinatario. Se avete ricevuto questo messaggio per errore, vi preghiamo di cancellarlo.',
    'Il contratto è firmato.',
    'Il contratto è firmato.\n\nLe informazioni contenute in questo messaggio sono riservate e destinate esclusivamente al destinatario. Se avete ricevuto questo messaggio per errore, vi preghiamo di cancellarlo.',
  ],
  [
    'disclaimer-pt',
    'O contrato está assinado.\n\nEsta mensagem é confidencial e destina-se exclusivamente ao destinatário. Se a recebeu por engano, por favor apague-a.\n\nDe: Caio <c@g.example>\nEnviado: terça-feira, 3 de março de 2026 09:14\nPara: agent@inbox.example\nAssunto: Contrato\n\nAssinou?\n',
    'O contrato está assinado.',
    'O contrato está assinado.\n\nEsta mensagem é confidencial e destina-se exclusivamente ao destinatário. Se a recebeu por engano, por favor apague-a.',
  ],
  [
    'disclaimer-nl',
    'Het contract is getekend.\n\nDit bericht is vertrouwelijk en uitsluitend bestemd voor de geadresseerde. Indien u dit bericht ten onrechte hebt ontvangen, verzoeken wij u het te verwijderen.',
    'Het contract is getekend.',
    'Het contract is getekend.\n\nDit bericht is vertrouwelijk en uitsluitend bestemd voor de geadresseerde. Indien u dit bericht ten onrechte hebt ontvangen, verzoeken wij u het te verwijderen.',
  ],
  [
    'disclaimer-after-name',
    'The contract is signed.\n\nBest regards,\nOwen Hale\nFacility Manager\n\nThis message may contain confidential information. If you received it in error, please notify the sender and delete it.',
    'The contract is signed.\n\nBest regards,\nOwen Hale\nFacility Manager',
    'The contract is signed.\n\nBest regards,\nOwen Hale\nFacility Manager\n\nThis message may contain confidential information. If you received it in error, please notify the sender and delete it.',
    'The contract is signed.',
  ],
  [
    'sign-off-card',
    'The contract is signed.\n\nKind regards\n\nOwen Hale\nFacility Manager\nOffice Ltd | 4 Mill Lane | Leeds LS1 4AB\nT: +44 20 7946 0123 | M: +44 7700 900123\nwww.office.example\n\nFrom: Laura <laura@print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: agent@inbox.example\nSubject: Contract\n\nSigned?\n',
    'The contract is signed.\n\nKind regards\n\nOwen Hale\nFacility Manager\nOffice Ltd | 4 Mill Lane | Leeds LS1 4AB\nT: +44 20 7946 0123 | M: +44 7700 900123\nwww.office.example',
    'The contract is signed.',
    'The contract is signed.\n\nKind regards',
    'The contract is signed.\n\nKind regards\n\nOwen Hale',
  ],
  [
    'mfg',
    'Passt.\n\nMfG\nJ. Brandt\n\nAm 3.3.26 um 9:14 schrieb Katrin Vogel:\n> Passt das?\n',
    'Passt.\n\nMfG\nJ. Brandt',
  ],
  [
    'dash-name',
    'Will do!\n\n- Owen\n\nOn Tue, Mar 3, 2026 at 9:14 AM Laura <laura@print.example> wrote:\n\n> Can you?\n',
    'Will do!\n\n- Owen',
    'Will do!',
  ],
  [
    'device-then-name',
    'On my way.\n\nOwen\n\nSent from my iPad, please excuse typos.\n',
    'On my way.\n\nOwen',
  ],
  [
    'device-top',
    'Sent from my iPhone\n\nOn my way, ten minutes.\n\nOn Mar 3, 2026, at 9:14 AM, Laura <laura@print.example> wrote:\n\nWhere are you?\n',
    'On my way, ten minutes.',
    'Sent from my iPhone\n\nOn my way, ten minutes.',
  ],
  [
    'bounce',
    "This is the mail system at host mx.print.example.\n\nI'm sorry to have to inform you that your message could not\nbe delivered to one or more recipients.\n\n<laura@print.example>: host mx.print.example said: 550 5.1.1 User unknown\n\nFinal-Recipient: rfc822; laura@print.example\nAction: failed\nStatus: 5.1.1\n",
    "This is the mail system at host mx.print.example.\n\nI'm sorry to have to inform you that your message could not\nbe delivered to one or more recipients.\n\n<laura@print.example>: host mx.print.example said: 550 5.1.1 User unknown\n\nFinal-Recipient: rfc822; laura@print.example\nAction: failed\nStatus: 5.1.1",
  ],
  [
    'out-of-office',
    'I am out of the office until 12 March.\n\nIn urgent cases write to desk@office.example.\n\nFrom: Laura <laura@print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: Owen\nSubject: Proof\n\nDo you agree?\n',
    'I am out of the office until 12 March.\n\nIn urgent cases write to desk@office.example.',
  ],
  [
    'newsletter',
    'New paper has arrived: cream and grey.\n\nVisit our shop for samples.\n\nUnsubscribe: https://print.example/u/81\n',
    'New paper has arrived: cream and grey.\n\nVisit our shop for samples.',
    'New paper has arrived: cream and grey.\n\nVisit our shop for samples.\n\nUnsubscribe: https://print.example/u/81',
  ],
]

export const footers: ReplyMail[] = rows.map(([id, text, expected, ...alt]) => ({
  id: `messy-${id}`,
  text,
  expected,
  alt,
  tier: 'policy',
}))

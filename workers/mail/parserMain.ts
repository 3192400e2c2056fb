import { parseMail } from '../../shared/mail/parseMail.ts'

/** Reads one message from stdin and prints what becomes of it: the child process of `parseInProcess`. */
const mail = await parseMail(await Bun.stdin.bytes(), process.argv[2] ?? '')
const attachments = mail.attachments.map((attachment) => ({
  ...attachment,
  content: Buffer.from(attachment.content).toString('base64'),
}))
process.stdout.write(JSON.stringify({ ...mail, attachments, contentHash: undefined }))

import { parseMail } from '../../shared/mail/parseMail.ts'

/** Parses one message from stdin and prints it as JSON: the child process of `parseInProcess`. */
const mail = await parseMail(await Bun.stdin.bytes(), process.argv[2] ?? '')
const attachments = mail.attachments.map((attachment) => ({
  ...attachment,
  content: Buffer.from(attachment.content).toString('base64'),
}))
process.stdout.write(JSON.stringify({ ...mail, attachments, contentHash: undefined }))

import { join } from 'node:path'
import type { Attachment, ParsedMail } from '../../shared/mail/parseMail.ts'
import { contentHash } from '../../shared/mail/rawMail.ts'

const TIMEOUT_MS = 20_000

/** The JSON that parserMain.ts prints: bytes in base64. */
type Printed = Omit<ParsedMail, 'contentHash' | 'attachments'> & {
  attachments: (Attachment & { content: string })[]
}

/**
 * Parses a message in a child process, for a job that several times did not end. A message that kills its parser harms
 * no other message there.
 * @throws when the parser throws, dies or takes too long.
 */
export async function parseInProcess(raw: Buffer, domain: string): Promise<ParsedMail> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'parserMain.ts'), domain], {
    stdin: raw,
    stdout: 'pipe',
    stderr: 'ignore',
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited])
  if (code !== 0) throw new Error(`the parser ended with ${child.signalCode ?? code}`)
  const mail = JSON.parse(text) as Printed
  const attachments = mail.attachments.map((attachment) => ({
    ...attachment,
    content: Buffer.from(attachment.content, 'base64'),
  }))
  return { ...mail, attachments, contentHash: contentHash(raw) }
}

import type { SMTPServer, SMTPServerSession } from 'smtp-server'
import { parseAnyAddress } from '../../shared/mail/address.ts'

type Parsed = { address: string } | false
type Connection = {
  session: SMTPServerSession
  _parseAddressCommand(name: string, command: string): Parsed
}

/**
 * Matches an SMTP path with a quoted local part (RFC 5321 §4.1.2), because the SMTP library would end the path at the
 * first space, even within quotes.
 */
const QUOTED_PATH = /^(mail from|rcpt to)\s*:\s*<("[^"\\<>@]{1,62}"@[^\s<>@]{1,253})>/i
const STAND_IN = 'quoted@example.com'

/**
 * Makes an SMTP connection accept paths with a quoted local part. The SMTP library itself still reads the parameters
 * that follow the path.
 */
export function takeQuotedPaths(server: SMTPServer, session: SMTPServerSession): void {
  const { connections } = server as unknown as { connections: Set<Connection> }
  for (const connection of connections) {
    if (connection.session !== session) continue
    const parse = connection._parseAddressCommand.bind(connection)
    connection._parseAddressCommand = (name, command) => {
      const [path, verb, given] = QUOTED_PATH.exec(command) ?? []
      const address = given === undefined ? null : parseAnyAddress(given)
      if (path === undefined || address === null) return parse(name, command)
      const parsed = parse(name, `${verb}:<${STAND_IN}>${command.slice(path.length)}`)
      return parsed && { ...parsed, address }
    }
  }
}

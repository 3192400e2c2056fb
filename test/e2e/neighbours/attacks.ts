import { connect, type Socket } from 'node:net'
import { BOMBS } from '../../support/mail/bombs.ts'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { createClient } from '../../support/service.ts'

/** Holds the URL, ports and keys that an attacker's process needs. */
export type Target = {
  url: string
  smtpPort: number
  key: string
  inbox: string
  /**
   * Holds the number of mails that one flood attack sends. The number is small in a short test, which must not wait for
   * the end of a long flood.
   */
  flood: number
}

const MB = 1024 * 1024

/** Repeats `work` endlessly in as many parallel loops as `lanes` says. */
const forEver = (lanes: number, work: (lane: number) => Promise<unknown>) =>
  Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      // After a refused or broken request, the attack pauses and then goes on. Without the pause, an attack whose
      // requests are refused would only be a flood of requests.
      for (;;) await work(lane).catch(() => Bun.sleep(20))
    }),
  )

/**
 * Holds one attack for each resource that projects share. Each attack causes the highest load that one project can
 * cause, and runs until the process of the attack is killed.
 */
export const ATTACKS: Record<string, (target: Target) => Promise<unknown>> = {
  bodies: (target) => forEver(12, () => trickle(target)),
  'many values': ({ url, key }) => {
    const client = createClient(url, key)
    const body = JSON.stringify({ to: Array(260_000).fill('a@b.c'), subject: 's', text: 't' })
    // Twenty concurrent requests stay within the rate limit of a project, so the rate limit does not stop this attack.
    return forEver(20, async () => {
      await client.post('/v0/messages/send', body)
      await Bun.sleep(6_000)
    })
  },
  searches: ({ url, key }) => {
    const client = createClient(url, key)
    const letters = 'abcdefgh'.split('').map((letter) => `${letter}12*`)
    return forEver(50, async () => {
      const { status } = await client.get(
        `/v0/messages?q=${encodeURIComponent(`${letters.join(' OR ')} zzz`)}`,
      )
      if (status === 429) await Bun.sleep(200)
    })
  },
  'long waits': ({ url, key }) => {
    const client = createClient(url, key)
    return forEver(50, async () => {
      const { status } = await client.get(
        '/v0/messages/wait?after=1970-01-01&subject=never&timeout=1',
      )
      if (status === 429) await Bun.sleep(200)
    })
  },
  streams: ({ url, key }) =>
    forEver(300, async () => {
      const response = await fetch(`${url}/v0/events`, {
        headers: { authorization: `Bearer ${key}` },
      })
      if (response.status === 429) await Bun.sleep(1_000)
      else for await (const _ of response.body!);
    }),
  'silent name servers': ({ smtpPort, inbox }) =>
    forEver(4, async (lane) => {
      const sender = `a@silent-${crypto.randomUUID()}.test`
      await deliverRaw(smtpPort, inbox, `From: ${sender}\n\nx\n`, {
        sender,
        localAddress: `127.0.5.${lane + 1}`,
      })
      await Bun.sleep(50)
    }),
  'a flood into one inbox': ({ smtpPort, inbox, flood }) => {
    const text = `${'Lorem ipsum dolor sit amet.\n'.repeat(9_000)}`
    return forEver(4, async (lane) => {
      for (let n = 0; n < flood / 4; n++) {
        await deliverRaw(smtpPort, inbox, `Subject: ${crypto.randomUUID()}\n\n${text}`, {
          localAddress: `127.0.6.${lane + 1}`,
        })
      }
      await Bun.sleep(60_000)
    })
  },
  // Each mail of this attack is so small that the service stores it together with other small mails. Half of the mails
  // contain the CSS that takes the parser most time.
  'a backlog of 60 KB': ({ smtpPort, inbox, flood }) => {
    const bodies = [wordsOf(60_000), styledOf(60_000)]
    return forEver(8, async (lane) => {
      for (let n = 0; n < (flood * 5) / 8; n++) {
        const type = n % 2 === 0 ? 'plain' : 'html'
        const head = `Subject: ${crypto.randomUUID()}\nContent-Type: text/${type}\n`
        await deliverRaw(smtpPort, inbox, `${head}\n${bodies[n % 2]}`, {
          localAddress: `127.0.10.${1 + (lane % 2)}`,
        })
      }
      await Bun.sleep(60_000)
    })
  },
  'heavy mail': ({ smtpPort, inbox }) => {
    const lines = 'YQ=='.repeat(18).concat('\n').repeat(100_000)
    return forEver(2, async (lane) => {
      const head = `Subject: ${crypto.randomUUID()}\nContent-Transfer-Encoding: base64\n`
      await deliverRaw(smtpPort, inbox, `${head}\n${lines}`, {
        localAddress: `127.0.7.${lane + 1}`,
      })
      await Bun.sleep(500)
    })
  },
  // Each file that this attack sends takes the attachment reader its whole time limit, so the attack causes the highest
  // load.
  'files that take long': ({ smtpPort, inbox }) => {
    const files = ['a PDF of forms in forms', 'a rule of every second'].map((name) =>
      BOMBS[name]!(),
    )
    return forEver(4, async (lane) => {
      const { filename, content } = files[lane % files.length]!
      const lines = content.toString('base64').replaceAll(/.{76}/g, '$&\n')
      const head = `Subject: ${crypto.randomUUID()}\nContent-Type: application/octet-stream; name=${filename}\nContent-Disposition: attachment; filename=${filename}\nContent-Transfer-Encoding: base64\n`
      await deliverRaw(smtpPort, inbox, `${head}\n${lines}`, {
        localAddress: `127.0.11.${1 + (lane % 2)}`,
      })
      await Bun.sleep(200)
    })
  },
  'idle connections': ({ smtpPort }) =>
    forEver(520, async (lane) => {
      const talk = await talkSmtp(smtpPort, `127.0.8.${1 + (lane % 10)}`)
      await talk.closed
      await Bun.sleep(1_000)
    }),
  'unfinished messages': ({ smtpPort, inbox }) => {
    const bytes = Buffer.alloc(16 * MB, `${'x'.repeat(98)}\r\n`)
    return forEver(16, async (lane) => {
      const talk = await talkSmtp(smtpPort, `127.0.9.${1 + (lane % 4)}`)
      await talk.say('MAIL FROM:<a@example.com>')
      await talk.say(`RCPT TO:<${inbox}>`)
      await talk.say('DATA')
      talk.write(bytes)
      await talk.closed
      await Bun.sleep(1_000)
    })
  },
}

/** Returns a text of different words. */
const wordsOf = (bytes: number): string =>
  Array.from({ length: bytes / 10 }, (_, n) => `w${(n * 7919).toString(36).padStart(7, 'x')}`)
    .join(' ')
    .replaceAll(/(.{60,70}) /g, '$1\n')

/**
 * Returns HTML that has as many CSS rules as elements. The CSS parser compares each element with the rules of its
 * class.
 */
function styledOf(bytes: number): string {
  const count = bytes / 60
  const rules = Array.from({ length: count }, (_, n) => `.c p .a${n % 30}{color:#fff}\n`).join('')
  const elements = Array.from({ length: count }, (_, n) => `<p class="a${n % 30} c">word${n}\n`)
  return `<style>${rules}</style>${elements.join('')}`
}

/** Sends most of a large request body, but never sends the rest. */
async function trickle({ url, key }: Target): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket: Socket = connect(Number(port), hostname)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => {})
  socket.on('data', () => socket.destroy())
  socket.write(
    `POST /mcp HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${35 * MB}\r\n\r\n{"attachments":"`,
  )
  socket.write(Buffer.alloc(32 * MB, 'a'))
  await closed
  await Bun.sleep(200)
}

if (import.meta.main) {
  const [name = '', target = ''] = process.argv.slice(2)
  await ATTACKS[name]!(JSON.parse(target))
}

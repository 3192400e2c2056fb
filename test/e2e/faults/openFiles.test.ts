import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { createTestDatabase } from '../../support/database/database.ts'
import { printed, startCommand } from '../../support/process/process.ts'
import '../../support/long.ts'

test('a process logs a line when it runs out of file descriptors, and another line when it can open files again', async () => {
  await using database = await createTestDatabase()
  await using api = startCommand(
    ['sh', '-c', 'ulimit -n 256; exec "$0" "$@"', process.execPath, 'api/main.ts'],
    { DATABASE_URL: database.url, PORT: '0' },
  )
  const [, port] = await printed(api, /"port":(\d+)/)
  const [low] = await printed(api, /.*the limit of open files is low.*/)
  expect(JSON.parse(low)).toMatchObject({ level: 'warn', limit: 256 })
  const sockets: Socket[] = Array.from({ length: 300 }, () =>
    connect(Number(port), '127.0.0.1').on('error', () => {}),
  )
  const [short] = await printed(api, /.*open files run out.*/)
  expect(JSON.parse(short)).toMatchObject({ level: 'error', limit: 256 })
  for (const socket of sockets) socket.destroy()
  await printed(api, /open files are free again/)
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200)
})

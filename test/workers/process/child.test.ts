import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { type ChildError, createChildren, processorMs } from '../../../workers/process/child.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import { waitFor } from '../../support/waitFor.ts'

const childrenOf = (file: string) =>
  createChildren<unknown, number>({
    file: join(import.meta.dir, file),
    name: 'the program',
    limits: { timeMaxMs: 60_000, memoryMaxBytes: 1024 * 1024 * 1024 },
  })

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const refusal = (asked: Promise<unknown>) =>
  asked.then(
    () => Promise.reject(new Error('it was answered')),
    (error: ChildError) => [error.name, error.message],
  )

test('a child process handles several requests one after another', async () => {
  const children = childrenOf('childProgram.ts')
  const { result: first } = await children.run('pid')
  expect((await children.run('pid')).result).toBe(first)
})

test('a child process that throws an error is killed, and the caller gets the message of the error', async () => {
  const children = childrenOf('childProgram.ts')
  const { result: first } = await children.run('pid')
  expect(await refusal(children.run('throw'))).toEqual(['ChildError', 'Error: no such letter'])
  await waitFor('the end of the child', () => !isAlive(first))
  expect((await children.run('pid')).result).not.toBe(first)
})

test('a child process that has ended while idle gets no more requests', async () => {
  const children = childrenOf('childProgram.ts')
  const { result: first } = await children.run('end soon')
  await waitFor('the end of the child', () => !isAlive(first))
  expect((await children.run('pid')).result).not.toBe(first)
})

test('a child process with endless work ends when its parent process is killed', async () => {
  await using parent = startProcess('test/workers/process/parentProgram.ts', {})
  const pid = Number((await printed(parent, /child (\d+)/))[1])
  const spentMs = processorMs(pid)!
  await waitFor('the endless work', () => processorMs(pid)! > spentMs + 200)
  parent.child.kill('SIGKILL')
  await waitFor('the end of the child', () => !isAlive(pid))
})

test('if a child process does not start or a request cannot be sent, the caller gets a ChildError', async () => {
  const [name, message] = await refusal(childrenOf('absent.ts').run('pid'))
  expect([name, message]).toEqual(['ChildError', 'the program ended with 1'])
  const unsent = await refusal(childrenOf('childProgram.ts').run(() => {}))
  expect(unsent).toEqual(['ChildError', expect.stringContaining('the program: ')])
})

test('a ChildError counts as an accident if the process did not start or was killed, but not if the program threw or exceeded a limit', async () => {
  const isAccident = (asked: Promise<unknown>) =>
    asked.then(
      () => Promise.reject(new Error('it was answered')),
      (error: ChildError) => error.isAccident,
    )
  expect(await isAccident(childrenOf('absent.ts').run('pid'))).toBe(true)
  const children = childrenOf('childProgram.ts')
  const { result: pid } = await children.run('pid')
  const endless = isAccident(children.run('spin'))
  await waitFor('the endless work', () => processorMs(pid)! > 0)
  process.kill(pid, 'SIGKILL')
  expect(await endless).toBe(true)
  expect(await isAccident(children.run('throw'))).toBe(false)
  const hasty = createChildren<unknown, number>({
    file: join(import.meta.dir, 'childProgram.ts'),
    name: 'the program',
    limits: { timeMaxMs: 10, memoryMaxBytes: 1024 * 1024 * 1024 },
  })
  expect(await isAccident(hasty.run('spin'))).toBe(false)
})

test('a child process ignores SIGTERM and SIGINT, because systemd and a terminal send them to all processes at once', async () => {
  const children = childrenOf('childProgram.ts')
  const { result: pid } = await children.run('pid')
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.kill(pid, signal)
    expect((await children.run('pid')).result).toBe(pid)
  }
})

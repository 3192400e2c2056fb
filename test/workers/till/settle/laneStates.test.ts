import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, GROUP_STATES, LOOK_STATES } from '../../../../workers/till/settle/laneStates.ts'

/**
 * Returns the lines of a state diagram for a transition table. The diagram leaves out transitions that do not change
 * the state.
 */
const draw = (states: Record<string, Record<string, string>>) =>
  Object.entries(states).flatMap(([from, events]) =>
    Object.entries(events)
      .filter(([, to]) => to !== from)
      .map(([event, to]) => `${from} --> ${to}: ${event}`),
  )

test('the diagram in ARCHITECTURE.md and the tables in the code show the same states for reading the waiting payments and for payment groups', () => {
  const text = readFileSync(join(import.meta.dir, '../../../../ARCHITECTURE.md'), 'utf8')
  const drawn = text.match(/^ {4}\S.* --> .*(?:: (?:asked|looked|begun|ended))$/gm)!
  const tables = [LOOK_STATES, GROUP_STATES].flatMap((states) => draw(states as never))
  expect(drawn.map((line) => line.trim()).toSorted()).toEqual(tables.toSorted())
})

test('if a settlement request arrives while the waiting payments are being read, they are read once more', () => {
  const asked = after(LOOK_STATES, after(LOOK_STATES, 'idle', 'asked'), 'asked')
  expect(after(LOOK_STATES, asked, 'looked')).toBe('looking')
  expect(after(LOOK_STATES, 'looking', 'looked')).toBe('idle')
})

test('the table of payment group states throws an error if a third group begins, or if a group ends that has not begun', () => {
  expect(() => after(GROUP_STATES, 'two groups', 'begun')).toThrow('begun in the state two groups')
  expect(() => after(GROUP_STATES, 'free', 'ended')).toThrow('ended in the state free')
})

/**
 * Reports unusable settings. The `message` has one line for each of them: the name of the variable, and then the rule
 * for its value.
 */
export class ConfigError extends Error {}

/**
 * Reports that the server in a setting is unreachable. The setting may be right, because the server may respond at a
 * later start of the process.
 */
export class AwayError extends ConfigError {}

/**
 * Names an environment variable, and the rule that its value breaks. The text never contains the value, because the
 * value can be a key or contain a password.
 */
export type Fault = { variable: string; rule: string }

export const faultLine = ({ variable, rule }: Fault): string => `${variable}: ${rule}`

/**
 * Reports unusable settings. The error's `message` has one line for each unusable setting. The line names the variable
 * and then the rule for its value.
 */
export class ConfigError extends Error {}

/**
 * Reports a setting that names an unreachable server. The setting may be right, because a later start of the process
 * may reach the server.
 */
export class AwayError extends ConfigError {}

/**
 * Names an environment variable, and the rule that the variable's value breaks. The description of a fault never
 * contains the variable's value, because the value can be a key or contain a password.
 */
export type Fault = { variable: string; rule: string }

export const faultLine = ({ variable, rule }: Fault): string => `${variable}: ${rule}`

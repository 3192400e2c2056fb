-- The call of an allowed factory that deploys the payer's wallet in the transaction of the payment (ERC-6492).
alter table payments
  add column factory text,
  add column factory_data text,
  add check ((factory is null) = (factory_data is null));

-- The stored claim holds it.
alter table payment_checks drop column erc6492;

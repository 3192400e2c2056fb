-- The call by which an allowed factory deploys the payer's wallet in the transaction of the payment (ERC-6492).
alter table payments
  add column factory text,
  add column factory_data text,
  add check ((factory is null) = (factory_data is null));

-- The claim holds it now.
alter table payment_checks drop column erc6492;

(*
 * Redlock as libredlock runs it, as one executable function: [step] takes a state and an action,
 * and returns the next state, or None if the action is not possible or not allowed.
 *
 * Faults need no actions of their own. A command stays in [sent] for ever, so it may be carried out
 * at any time, at any node, any number of times, or never: it is late, reordered, doubled or lost.
 * A client that crashes or pauses is one that takes no further action.
 *)
Require Import ZArith List Bool.
Require Export Common.
Import ListNotations.
Open Scope Z_scope.

Definition client := nat.
Definition token := (client * nat)%type. (* the client that drew it, and which of its tries *)
Definition owner (t : token) : client := fst t.
Definition token_eqb (t u : token) := Nat.eqb (fst t) (fst u) && Nat.eqb (snd t) (snd u).

(* Take sets the key if it is free or the token's own; Renew only if it is the token's own. *)
Inductive kind := Take | Renew.
Definition is_renewal k := match k with Renew => true | Take => false end.

(* A command of a client, with the reading of the client's clock before the first byte was sent. *)
Record round := Round { tok : token; what : kind; start : Z; ttl : Z }.
Definition round_eqb (r s : round) :=
  token_eqb (tok r) (tok s) && Bool.eqb (is_renewal (what r)) (is_renewal (what s)) &&
  (start r =? start s) && (ttl r =? ttl s).

(*
 * The time for which a grant says that the node keeps the key: for a TTL, counted by the client's
 * clock from an instant on; or, as a push says it, until an instant of the node's clock.
 *)
Inductive span := Asked (k : kind) (from ttl : Z) | Pushed (expiry : Z).
Definition span_eqb (x y : span) := match x, y with
  | Asked k f d, Asked k' f' d' =>
      Bool.eqb (is_renewal k) (is_renewal k') && (f =? f') && (d =? d')
  | Pushed e, Pushed e' => e =? e'
  | _, _ => false
  end.

(* A node's grant; [since] counts how often the node had lost its memory when it granted. *)
Record grant := Grant { who : token; place : node; since : nat; said : span }.
Definition grant_eqb (g h : grant) :=
  token_eqb (who g) (who h) && Nat.eqb (place g) (place h) && Nat.eqb (since g) (since h) &&
  span_eqb (said g) (said h).

Record state := State {
  nclock : node -> Z;                  (* what the node's clock shows *)
  cclock : client -> Z;                (* what the client's clock shows *)
  keys : node -> option (token * Z);   (* value, and expiry by the node's clock *)
  memory : node -> nat;                (* how often the node has lost its memory *)
  born : node -> nat -> client -> Z;   (* what a client's clock showed when the memory began *)
  sent : list round;                   (* commands; never removed *)
  granted : list grant;                (* grants that a client may count at any time, or never *)
  ended : list token;                  (* tokens given up for good: released, lost, failed *)
  held : list (token * (nat * Z));     (* validities: by which list, and until when *)
  reported : list (token * (nat * Z)) }. (* yeses: by which list, and at which clock reading *)

Inductive action :=
| Tick (dn : node -> Z) (dc : client -> Z)              (* time passes: how far each clock moves *)
| Send (t : token) (k : kind) (d : Z)                   (* a client reads its clock, and sends *)
| Exec (r : round) (n : node) (e : Z)                   (* a node carries out a command *)
| Pass (t : token) (n : node) (e : Z)                   (* a node pushes its free key to a waiter *)
| Read (g : grant) (h : Z)                              (* the waiter reads a push *)
| Delete (t : token) (n : node)                         (* a release or an undo arrives *)
| Hold (t : token) (m : nat) (gs : list grant) (z : Z)  (* a yes: acquired, extended or renewed *)
| End (t : token)                                       (* the client gives the token up *)
| Part (t : token)                                      (* a lock is released to the next one *)
| Forget (n : node).                                    (* the node loses its memory *)

Arguments Grant who place%nat since%nat said.
Arguments Exec r n%nat e%Z.
Arguments Pass t n%nat e%Z.
Arguments Delete t n%nat.
Arguments Hold t m%nat gs z%Z.
Arguments Forget n%nat.

(* The rules. Needed.v switches off each of them, and shows what happens. *)
Record rules := Rules {
  compares : bool;     (* a release compares the token *)
  early_start : bool;  (* validity counts from before the first byte was sent *)
  fresh_tokens : bool; (* a token that was given up does not count again *)
  minds_drift : bool;  (* the validity is less drift and grain *)
  looks : bool;        (* before a yes the clock is read, and the validity must last *)
  unbroken : bool;     (* after the validity has ended, a renewal does not count *)
  ages : bool;         (* grants count max_ttl after the node's memory began *)
  ages_all : bool;     (* ... and so do renewals *)
  upper_bound : bool;  (* a push is converted with an upper bound of the node's clock *)
  short : bool;        (* a reservation is no longer than max_ttl, less drift *)
  in_step : bool }.    (* clocks are within drift of each other *)
Definition strict := Rules true true true true true true true true true true true.

Section Model.
Variable R : rules.
Variables (nodes : list node) (clients : list client).
Variable quorum : nat -> list node -> bool. (* of each numbered list, or pair of lists *)
Variables (slow fast : Z).                  (* drift = 1 - slow / fast *)
Variable grain : Z.                         (* the error of a node's expiry: 2 ms *)
Variable max_ttl : Z.

(* While one clock moves by [slow], no other moves by more than [fast]. Nodes are not compared. *)
Definition agree x y :=
  (0 <=? x) && (0 <=? y) && (slow * x <=? fast * y) && (slow * y <=? fast * x).
Definition within_drift (dn : node -> Z) (dc : client -> Z) :=
  forallb (fun c => (0 <=? dc c) && forallb (fun c' => agree (dc c) (dc c')) clients &&
                    forallb (fun n => agree (dc c) (dn n)) nodes) clients.

(* What a node knows about its key. *)
Definition is_free s n := match keys s n with Some (_, e) => e <=? nclock s n | None => true end.
Definition has s n t := match keys s n with
  | Some (u, e) => token_eqb u t && (nclock s n <? e)
  | None => false
  end.
(* The node never shortens the life of a key. *)
Definition at_least s n e := match keys s n with Some (_, e') => Z.max e e' | None => e end.

(* A grant counts if the keys that the node had lost before it granted have expired by now. *)
Definition aged s g :=
  (born s (place g) (since g) (owner (who g)) + max_ttl <=? cclock s (owner (who g))) ||
  negb (ages R) ||
  (negb (ages_all R) && match said g with Asked Renew _ _ => true | _ => false end).

(* The library's validity: start + ttl - (ttl * drift, rounded up, + 2 ms). *)
Definition drift_of d := d - d * slow / fast + grain.
Definition end_of now g := match said g with
  | Asked _ a d =>
      Some ((if early_start R then a else now) + d - (if minds_drift R then drift_of d else 0))
  | Pushed _ => None (* a push counts once it was read *)
  end.
Definition lasts now z g := match end_of now g with Some e => z <=? e | None => false end.

Definition is_ended s t := fresh_tokens R && mem token_eqb t (ended s).
Definition was_held s t := existsb (fun p => token_eqb (fst p) t) (held s).
Definition is_held s t :=
  existsb (fun p => token_eqb (fst p) t && (cclock s (owner t) <? snd (snd p))) (held s).

Definition put s n t e g :=
  State (nclock s) (cclock s) (upd (keys s) n (Some (t, e))) (memory s) (born s) (sent s)
    (g :: granted s) (ended s) (held s) (reported s).

Definition step (s : state) (x : action) : option state :=
  match x with
  | Tick dn dc =>
      if negb (in_step R) || within_drift dn dc then
        Some (State (fun n => nclock s n + dn n) (fun c => cclock s c + dc c) (keys s) (memory s)
          (born s) (sent s) (granted s) (ended s) (held s) (reported s))
      else None
  | Send t k d =>
      if mem Nat.eqb (owner t) clients && (d <=? max_ttl) then
        Some (State (nclock s) (cclock s) (keys s) (memory s) (born s)
          (Round t k (cclock s (owner t)) d :: sent s) (granted s) (ended s) (held s) (reported s))
      else None
  | Exec r n e =>
      if mem Nat.eqb n nodes && mem round_eqb r (sent s) && (nclock s n + ttl r - grain <=? e) then
        if has s n (tok r) then
          Some (put s n (tok r) (at_least s n e)
            (Grant (tok r) n (memory s n) (Asked (what r) (start r) (ttl r))))
        else if is_free s n && negb (is_renewal (what r)) then
          Some (put s n (tok r) e
            (Grant (tok r) n (memory s n) (Asked (what r) (start r) (ttl r))))
        else Some s (* denied, or missing *)
      else None
  | Pass t n e =>
      if mem Nat.eqb n nodes && mem Nat.eqb (owner t) clients && is_free s n &&
         (negb (short R) || (fast * (e - nclock s n) <=? slow * max_ttl)) then
        Some (put s n t e (Grant t n (memory s n) (Pushed e)))
      else None
  | Read g h =>
      match said g with
      | Pushed e =>
          if mem grant_eqb g (granted s) &&
             (negb (upper_bound R) || (nclock s (place g) <=? h)) then
            Some (State (nclock s) (cclock s) (keys s) (memory s) (born s) (sent s)
              (Grant (who g) (place g) (since g) (Asked Take (cclock s (owner (who g))) (e - h))
                :: granted s)
              (ended s) (held s) (reported s))
          else None
      | Asked _ _ _ => None
      end
  | Delete t n =>
      if mem token_eqb t (ended s) &&
         (negb (compares R) ||
          match keys s n with Some (u, _) => token_eqb u t | None => false end) then
        Some (State (nclock s) (cclock s) (upd (keys s) n None) (memory s) (born s)
          (sent s) (granted s) (ended s) (held s) (reported s))
      else None
  | Hold t m gs z =>
      let now := cclock s (owner t) in
      if negb (is_ended s t) && quorum m (map place gs) &&
         forallb (fun g => mem grant_eqb g (granted s) && token_eqb (who g) t && aged s g &&
                           lasts now z g) gs &&
         (negb (looks R) || (now <? z)) &&
         (negb (unbroken R) || negb (was_held s t) || is_held s t) then
        Some (State (nclock s) (cclock s) (keys s) (memory s) (born s) (sent s)
          (granted s) (ended s) ((t, (m, z)) :: held s) ((t, (m, now)) :: reported s))
      else None
  | End t =>
      Some (State (nclock s) (cclock s) (keys s) (memory s) (born s) (sent s) (granted s)
        (t :: ended s) (filter (fun p => negb (token_eqb (fst p) t)) (held s)) (reported s))
  | Part t => (* inside the client: the next lock has a validity of its own *)
      Some (State (nclock s) (cclock s) (keys s) (memory s) (born s) (sent s) (granted s) (ended s)
        (filter (fun p => negb (token_eqb (fst p) t)) (held s)) (reported s))
  | Forget n =>
      let k := S (memory s n) in
      Some (State (nclock s) (cclock s) (upd (keys s) n None) (upd (memory s) n k)
        (upd (born s) n (upd (born s n) k (cclock s)))
        (sent s) (granted s) (ended s) (held s) (reported s))
  end.

Definition run := Common.run step.

(* Any clocks and any age of the nodes' memories; no key, and nothing sent. *)
Definition is_start s :=
  keys s = (fun _ => None) /\
  sent s = [] /\ granted s = [] /\ ended s = [] /\ held s = [] /\ reported s = [].

(* The token has validity by list m, by the clock of its client. *)
Definition valid s t m := exists z, In (t, (m, z)) (held s) /\ cclock s (owner t) < z.
End Model.

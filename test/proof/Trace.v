(*
 * A run of the simulator as a run of the model. [qstep] is [step] on tables, which a computer can
 * follow through thousands of actions; it also refuses a node that did something else than the
 * model's. What it accepts is a run ([accepted]), so that [redlock] holds for it.
 *)
Require Import ZArith List Bool Lia.
Require Import Model Invariant Exclusion Majorities.
Import ListNotations.
Open Scope Z_scope.

(* ---- tables: lists with a value for all other indexes ---- *)

Definition get {A} (d : A) (l : list A) n := nth n l d.
Fixpoint set {A} (d : A) (l : list A) n (x : A) : list A :=
  match n, l with
  | O, [] => [x]
  | O, _ :: l => x :: l
  | S n, [] => d :: set d [] n x
  | S n, y :: l => y :: set d l n x
  end.
Fixpoint add (l d : list Z) := match l, d with
  | [], _ => d
  | _, [] => l
  | x :: l, y :: d => x + y :: add l d
  end.

Lemma get_nil {A} (d : A) n : get d [] n = d.
Proof. now destruct n. Qed.
Lemma get_set {A} (d x : A) :
  forall n l m, get d (set d l n x) m = if Nat.eqb m n then x else get d l m.
Proof.
  induction n as [|n IH]; destruct l as [|y l], m as [|m]; cbn; auto; try apply (get_nil d m).
  - pose proof (IH [] m) as J; rewrite (get_nil d m) in J; exact J.
  - exact (IH l m).
Qed.
Lemma get_add : forall l d n, get 0 (add l d) n = get 0 l n + get 0 d n.
Proof. induction l as [|x l IH]; destruct d, n as [|n]; cbn; auto; try lia. exact (IH d n). Qed.

(* ---- the state ---- *)

(* What is known of a token. *)
Record entry := Entry {
  rounds : list round; grants : list grant; over : bool; holds : list (nat * Z) }.
Definition blank := Entry [] [] false [].
Definition book := list (list entry).
Definition of_token (b : book) (t : token) := get blank (get [] b (fst t)) (snd t).
Definition put_token (b : book) (t : token) x :=
  set [] b (fst t) (set blank (get [] b (fst t)) (snd t) x).

Record quick := Quick {
  ntime : list Z; ctime : list Z;
  table : list (option (token * Z));
  losses : list nat;
  births : list (node * nat * list Z); (* the clients' clocks when a node's memory began *)
  tokens : book }.
Notation nclk q n := (get 0 (ntime q) n).
Notation cclk q c := (get 0 (ctime q) c).

(* The actions, with lists in place of functions. *)
Inductive line :=
| LTick (dn dc : list Z)
| LSend (t : token) (k : kind) (d : Z)
| LExec (r : round) (n : node) (e : Z)  (* granted, and the key expires at e *)
| LPass (t : token) (n : node) (e : Z)
| LRead (g : grant) (h : Z)
| LDelete (t : token) (n : node)
| LHold (t : token) (m : nat) (gs : list grant) (z : Z)
| LEnd (t : token) | LPart (t : token)
| LForget (n : node).

Definition action_of l := match l with
  | LTick dn dc => Tick (get 0 dn) (get 0 dc) | LSend t k d => Send t k d
  | LExec r n e => Exec r n e | LPass t n e => Pass t n e | LRead g h => Read g h
  | LDelete t n => Delete t n | LHold t m gs z => Hold t m gs z
  | LEnd t => End t | LPart t => Part t | LForget n => Forget n
  end.

(* Why a line is refused. *)
Inductive rule :=
| Clocks_apart | Nobody | Token_over | Ttl_too_long | Nowhere | Never_sent | Expires_early
| Not_free | Not_its_own | Life_shortened | Reservation_too_long | No_such_push | Clock_behind
| Not_given_up | Not_the_tokens | No_quorum | No_such_grant | Grant_too_young | Grant_too_short
| Validity_over | Validity_broken.
Inductive verdict := Next (q : quick) | Refused (why : rule).
Definition need (b : bool) why v := if b then v else Refused why.
Section Trace.
Variables (nodes : list node) (clients : list client).
Variable lists : list (list (list node)).
Variables (slow fast grain max_ttl : Z).

(* A number outside of the table names a list without a quorum. *)
Definition list_of m := get [[]] lists m.
Notation quorum := (of_lists list_of).
Notation step := (step strict nodes clients quorum slow fast grain max_ttl).
Notation run := (run strict nodes clients quorum slow fast grain max_ttl).

Definition least (l : list Z) := fold_right Z.min (hd 0 l) l.
Definition most (l : list Z) := fold_right Z.max (hd 0 l) l.
(* If the extremes agree, all clocks do. *)
Definition near (dn dc : list Z) :=
  let ns := map (get 0 dn) nodes in let cs := map (get 0 dc) clients in
  let c := least cs in let c' := most cs in
  (0 <=? c) && (0 <=? least ns) && (slow * c' <=? fast * c) && (slow * c' <=? fast * least ns) &&
  (slow * most ns <=? fast * c).
Definition born_of q n k c :=
  match find (fun b => Nat.eqb (fst (fst b)) n && Nat.eqb (snd (fst b)) k) (births q) with
  | Some b => get 0 (snd b) c
  | None => - max_ttl (* at the start the memories are old *)
  end.

Definition free q n := match get None (table q) n with
  | Some (_, e) => e <=? nclk q n
  | None => true
  end.
Definition has q n t := match get None (table q) n with
  | Some (u, e) => token_eqb u t && (nclk q n <? e)
  | None => false
  end.
(* The node has not shortened the life of the token's key. *)
Definition lasts_longer q n e := match get None (table q) n with
  | Some (_, e') => e' <=? e
  | None => true
  end.
Definition grown q g :=
  born_of q (place g) (since g) (owner (who g)) + max_ttl <=? cclk q (owner (who g)).
Definition covers z g := match said g with
  | Asked _ a d => z <=? a + d - drift_of slow fast grain d
  | Pushed _ => false
  end.
Definition put_key q n x :=
  Quick (ntime q) (ctime q) (set None (table q) n x) (losses q) (births q) (tokens q).
Definition put_entry q t x :=
  Quick (ntime q) (ctime q) (table q) (losses q) (births q) (put_token (tokens q) t x).
Definition without_holds q t is_over :=
  let x := of_token (tokens q) t in put_entry q t (Entry (rounds x) (grants x) is_over []).
Definition add_grant q g :=
  let x := of_token (tokens q) (who g) in
  put_entry q (who g) (Entry (rounds x) (g :: grants x) (over x) (holds x)).

Definition qstep q l : verdict := match l with
  | LTick dn dc =>
      need (near dn dc) Clocks_apart
        (Next (Quick (add (ntime q) dn) (add (ctime q) dc) (table q) (losses q) (births q)
          (tokens q)))
  | LSend t k d =>
      let x := of_token (tokens q) t in
      need (mem Nat.eqb (owner t) clients) Nobody (
      (* The model allows it: a renewal that lacked its script is repeated, however late. *)
      need (negb (over x) || is_renewal k) Token_over (
      need (d <=? max_ttl) Ttl_too_long (
      Next (put_entry q t (Entry (Round t k (cclk q (owner t)) d :: rounds x) (grants x) (over x)
        (holds x))))))
  | LExec r n e =>
      need (mem Nat.eqb n nodes) Nowhere (
      need (mem round_eqb r (rounds (of_token (tokens q) (tok r)))) Never_sent (
      need (nclk q n + ttl r - grain <=? e) Expires_early (
      let q' := add_grant (put_key q n (Some (tok r, e)))
                  (Grant (tok r) n (get 0%nat (losses q) n) (Asked (what r) (start r) (ttl r))) in
      if has q n (tok r) then need (lasts_longer q n e) Life_shortened (Next q')
      else need (free q n) Not_free (need (negb (is_renewal (what r))) Not_its_own (Next q')))))
  | LPass t n e =>
      need (mem Nat.eqb n nodes) Nowhere (
      need (mem Nat.eqb (owner t) clients) Nobody (
      need (free q n) Not_free (
      need (fast * (e - nclk q n) <=? slow * max_ttl) Reservation_too_long (
      let g := Grant t n (get 0%nat (losses q) n) (Pushed e) in
      Next (add_grant (put_key q n (Some (t, e))) g)))))
  | LRead g h =>
      match said g with
      | Pushed e =>
          need (mem grant_eqb g (grants (of_token (tokens q) (who g)))) No_such_push (
          need (nclk q (place g) <=? h) Clock_behind (
          Next (add_grant q (Grant (who g) (place g) (since g)
                  (Asked Take (cclk q (owner (who g))) (e - h))))))
      | Asked _ _ _ => Refused No_such_push
      end
  | LDelete t n =>
      need (over (of_token (tokens q) t)) Not_given_up (
      need (match get None (table q) n with Some (u, _) => token_eqb u t | None => false end)
        Not_the_tokens (
      Next (put_key q n None)))
  | LHold t m gs z =>
      let x := of_token (tokens q) t in
      let now := cclk q (owner t) in
      need (negb (over x)) Token_over (
      need (quorum m (map place gs)) No_quorum (
      need (forallb (fun g => mem grant_eqb g (grants x) && token_eqb (who g) t) gs) No_such_grant (
      need (forallb (grown q) gs) Grant_too_young (
      need (forallb (covers z) gs) Grant_too_short (
      need (now <? z) Validity_over (
      need (match holds x with [] => true | _ => existsb (fun p => now <? snd p) (holds x) end)
        Validity_broken (
      Next (put_entry q t (Entry (rounds x) (grants x) (over x) ((m, z) :: holds x))))))))))
  | LEnd t => Next (without_holds q t true)
  | LPart t => Next (without_holds q t (over (of_token (tokens q) t)))
  | LForget n =>
      let k := S (get 0%nat (losses q) n) in
      Next (Quick (ntime q) (ctime q) (set None (table q) n None) (set 0%nat (losses q) n k)
        ((n, k, ctime q) :: births q) (tokens q))
  end.

(* All clocks at 0; all memories old. *)
Definition qstart := Quick [] [] [] [] [] [].
Definition start_state := State (fun _ => 0) (fun _ => 0) (fun _ => None) (fun _ => 0%nat)
  (fun _ _ _ => - max_ttl) [] [] [] [] [].
Fixpoint qrun q ls := match ls with
  | [] => Some q
  | l :: ls => match qstep q l with Next q' => qrun q' ls | Refused _ => None end
  end.

(* ---- what is accepted is a run ---- *)

Local Arguments get : simpl never. Local Arguments set : simpl never.
Local Arguments add : simpl never. Local Arguments of_token : simpl never.
Local Arguments put_token : simpl never.

(* The tables may know less of commands and grants than the model, but not more. *)
Record shows q s : Prop := {
  sh_n : forall n, nclock s n = get 0 (ntime q) n;
  sh_c : forall c, cclock s c = get 0 (ctime q) c;
  sh_keys : forall n, keys s n = get None (table q) n;
  sh_memory : forall n, memory s n = get 0%nat (losses q) n;
  sh_born : forall n k c, born s n k c = born_of q n k c;
  sh_sent : forall r, mem round_eqb r (rounds (of_token (tokens q) (tok r))) = true ->
    mem round_eqb r (sent s) = true;
  sh_granted : forall g, mem grant_eqb g (grants (of_token (tokens q) (who g))) = true ->
    mem grant_eqb g (granted s) = true;
  sh_ended : forall t, over (of_token (tokens q) t) = true <-> In t (ended s);
  sh_held : forall t m z, In (m, z) (holds (of_token (tokens q) t)) <-> In (t, (m, z)) (held s) }.

Lemma start_shows : shows qstart start_state.
Proof.
  assert (B : forall t, of_token [] t = blank) by (intros [[|c] [|k]]; reflexivity).
  split; unfold qstart; cbn; intros; rewrite ?B, ?get_nil in *; cbn in *; easy.
Qed.
Lemma of_put b t x u : of_token (put_token b t x) u = if token_eqb u t then x else of_token b u.
Proof.
  unfold of_token, put_token, token_eqb; rewrite get_set.
  destruct (Nat.eqb (fst u) _) eqn:E; cbn; auto. apply Nat.eqb_eq in E; now rewrite get_set, E.
Qed.
Lemma needed b why v q : need b why v = Next q -> b = true /\ v = Next q.
Proof. destruct b; cbn; [auto | discriminate]. Qed.
Lemma least_le l x : In x l -> least l <= x.
Proof.
  unfold least; generalize (hd 0 l); induction l as [|y l IH]; cbn; [easy|].
  intros d [-> | J]; [lia | specialize (IH d J); lia].
Qed.
Lemma most_ge l x : In x l -> x <= most l.
Proof.
  unfold most; generalize (hd 0 l); induction l as [|y l IH]; cbn; [easy|].
  intros d [-> | J]; [lia | specialize (IH d J); lia].
Qed.

Hypothesis clocks : 0 < slow <= fast.
Lemma near_within dn dc :
  near dn dc = true -> within_drift nodes clients slow fast (get 0 dn) (get 0 dc) = true.
Proof.
  unfold near; intros H; conds. unfold within_drift; apply forallb_forall; intros c C.
  assert (L : forall l (f : list Z) x, In x l ->
    least (map (get 0 f) l) <= get 0 f x <= most (map (get 0 f) l)).
  { intros l f x X; split; [apply least_le | apply most_ge]; apply in_map; exact X. }
  pose proof (L clients dc c C). apply andb_true_iff; split; [apply andb_true_iff; split|].
  - apply Z.leb_le; lia.
  - apply forallb_forall; intros c' C'; pose proof (L clients dc c' C').
    unfold agree; rewrite !andb_true_iff, !Z.leb_le; nia.
  - apply forallb_forall; intros n N; pose proof (L nodes dn n N).
    unfold agree; rewrite !andb_true_iff, !Z.leb_le; nia.
Qed.

Ltac ask H := repeat (apply needed in H; destruct H as [? H]).
Ltac took H := inversion H; subst; clear H.
Lemma shows_free q s n : shows q s -> free q n = is_free s n.
Proof. intros I; unfold free, is_free; now rewrite (sh_keys q s I), (sh_n q s I). Qed.
Lemma shows_has q s n t : shows q s -> has q n t = Model.has s n t.
Proof. intros I; unfold has, Model.has; now rewrite (sh_keys q s I), (sh_n q s I). Qed.

(* What changes is what is known of one token. *)
Lemma shows_entry q s s' t x : shows q s ->
  nclock s' = nclock s -> cclock s' = cclock s -> keys s' = keys s -> memory s' = memory s ->
  born s' = born s ->
  (forall r, mem round_eqb r (sent s) = true \/ tok r = t /\ mem round_eqb r (rounds x) = true ->
    mem round_eqb r (sent s') = true) ->
  (forall g, mem grant_eqb g (granted s) = true \/ who g = t /\ mem grant_eqb g (grants x) = true ->
    mem grant_eqb g (granted s') = true) ->
  (forall u, In u (ended s') <-> if token_eqb u t then over x = true else In u (ended s)) ->
  (forall u m z, In (u, (m, z)) (held s') <->
    if token_eqb u t then In (m, z) (holds x) else In (u, (m, z)) (held s)) ->
  shows (put_entry q t x) s'.
Proof.
  intros [] N C K M B S G E V; split; cbn; rewrite ?N, ?C, ?K, ?M, ?B; auto.
  - intros r; rewrite of_put; destruct (token_eqb (tok r) t) eqn:F; conds; auto.
  - intros g; rewrite of_put; destruct (token_eqb (who g) t) eqn:F; conds; auto.
  - intros u; rewrite of_put, E; destruct (token_eqb u t); [reflexivity | apply sh_ended0].
  - intros u m z; rewrite of_put, V; destruct (token_eqb u t); [reflexivity | apply sh_held0].
Qed.

(* Each case of a token: it is the one that changes, or another one. *)
Ltac cases_of u t I :=
  destruct (token_eqb u t) eqn:?; conds; subst;
  rewrite ?(sh_ended _ _ I), ?(sh_held _ _ I); try reflexivity.
(* Commands and grants are those of before, or one more. *)
Ltac known I := intros ? [J | [W J]]; cbn in J |- *; [auto | rewrite <- W in J];
  first [now apply (sh_sent _ _ I) | now apply (sh_granted _ _ I)].
Ltac one_more I := intros ? [J | [W J]]; cbn -[round_eqb grant_eqb] in J |- *;
  apply orb_true_iff; [right; exact J | apply orb_true_iff in J as [J | J]; [now left | right]];
  first [apply (sh_sent _ _ I) | apply (sh_granted _ _ I)]; rewrite W; exact J.
Lemma shows_grant q s g : shows q s -> shows (add_grant q g)
  (State (nclock s) (cclock s) (keys s) (memory s) (born s) (sent s) (g :: granted s) (ended s)
    (held s) (reported s)).
Proof.
  intros I; apply (shows_entry q s); cbn -[token_eqb]; auto.
  - known I.
  - one_more I.
  - intros u; cases_of u (who g) I.
  - intros u m z; cases_of u (who g) I.
Qed.
Lemma shows_key q s n x : shows q s -> shows (put_key q n x)
  (State (nclock s) (cclock s) (upd (keys s) n x) (memory s) (born s) (sent s) (granted s) (ended s)
    (held s) (reported s)).
Proof.
  intros []; split; cbn; auto. intros m; unfold upd; rewrite get_set; destruct (Nat.eqb m n); auto.
Qed.
Lemma shows_put q s n t e g :
  shows q s -> shows (add_grant (put_key q n (Some (t, e))) g) (put s n t e g).
Proof. intros I; exact (shows_grant _ _ g (shows_key q s n (Some (t, e)) I)). Qed.
Lemma shows_ended q s t : shows q s -> over (of_token (tokens q) t) = is_ended strict s t.
Proof.
  intros I; pose proof (sh_ended q s I t) as E; unfold is_ended; cbn -[token_eqb].
  destruct (over _) eqn:F, (mem token_eqb t (ended s)) eqn:G; auto; exfalso.
  - apply not_mem_token in G; tauto.
  - apply mem_token, E in G; congruence.
Qed.

(* Grants that the tables let count, count. *)
Lemma shows_counts q s t gs z : shows q s ->
  forallb (fun g => mem grant_eqb g (grants (of_token (tokens q) t)) && token_eqb (who g) t) gs
    = true ->
  forallb (grown q) gs = true -> forallb (covers z) gs = true ->
  forallb (fun g => mem grant_eqb g (granted s) && token_eqb (who g) t && aged strict max_ttl s g &&
                    lasts strict slow fast grain (cclock s (owner t)) z g) gs = true.
Proof.
  intros I M A C; apply forallb_forall; intros g J.
  rewrite forallb_forall in M, A, C; specialize (M g J); specialize (A g J); specialize (C g J).
  apply andb_true_iff in M as [M W]; pose proof W as W'; apply token_eqb_eq in W; subst t.
  unfold aged, grown in *; cbn -[token_eqb].
  rewrite (sh_granted q s I g M), W', (sh_born q s I), (sh_c q s I), A; cbn.
  unfold lasts, end_of, covers in *; cbn; destruct (said g); auto.
Qed.

(* The validity is the first one, or goes on. *)
Lemma shows_unbroken q s t : shows q s ->
  match holds (of_token (tokens q) t) with
  | [] => true
  | _ => existsb (fun p => get 0 (ctime q) (owner t) <? snd p) (holds (of_token (tokens q) t))
  end = true -> negb (was_held s t) || is_held s t = true.
Proof.
  intros I; destruct (holds (of_token (tokens q) t)) as [|p ps] eqn:P; intros H; apply orb_true_iff.
  - left; apply negb_true_iff, not_true_iff_false; intros W.
    unfold was_held in W; apply existsb_exists in W as ([u [a b]] & J & W); conds; cbn in *; subst.
    apply (sh_held q s I) in J; rewrite P in J; exact J.
  - right; apply existsb_exists in H as ([a b] & J & L).
    unfold is_held; apply existsb_exists; exists (t, (a, b)); split.
    + apply (sh_held q s I); rewrite P; exact J.
    + rewrite (sh_c q s I); apply andb_true_iff; split; [now apply token_eqb_eq | exact L].
Qed.
Ltac use_tests := repeat match goal with H : ?b = true |- context [?b] => rewrite H end.
Lemma step_shows q s l q' : shows q s -> qstep q l = Next q' ->
  exists s', step s (action_of l) = Some s' /\ shows q' s'.
Proof.
  intros I H. destruct l as [dn dc|t k d|r n e|t n e|g h|t n|t m gs z|t|t|n];
    cbn -[token_eqb near] in H; ask H.
  - (* Tick *) took H. cbn -[within_drift]. rewrite near_within by assumption.
    eexists; split; [reflexivity|].
    destruct I; split; cbn; auto; intros; rewrite get_add; congruence.
  - (* Send *) took H. cbn. use_tests. eexists; split; [reflexivity|]. rewrite (sh_c q s I).
    apply (shows_entry q s); cbn -[token_eqb]; auto.
    + one_more I.
    + known I.
    + intros u; cases_of u t I.
    + intros u m z; cases_of u t I.
  - (* Exec *) cbn -[token_eqb].
    rewrite (sh_sent q s I r), (sh_n q s I) by assumption. use_tests. cbn.
    rewrite <- (shows_has q s n (tok r) I), <- (shows_free q s n I), (sh_memory q s I).
    destruct (has q n (tok r)) eqn:F; ask H; took H; eexists; split; try reflexivity.
    + replace (at_least s n e) with e; [apply shows_put; auto|].
      unfold at_least; rewrite (sh_keys q s I). unfold lasts_longer in *.
      destruct (get None (table q) n) as [[u y]|]; auto; conds; lia.
    + use_tests. reflexivity.
    + apply shows_put; auto.
  - (* Pass *) took H. cbn -[token_eqb].
    rewrite <- (shows_free q s n I), (sh_n q s I), (sh_memory q s I). use_tests. cbn.
    eexists; split; [reflexivity|]. apply shows_put; auto.
  - (* Read *) destruct (said g) as [|e] eqn:E; [discriminate|]; ask H; took H.
    cbn -[token_eqb]. rewrite E, (sh_granted q s I g) by assumption.
    rewrite (sh_n q s I), (sh_c q s I). use_tests.
    eexists; split; [reflexivity|]. now apply shows_grant.
  - (* Delete *) took H. cbn -[token_eqb]. rewrite (sh_keys q s I).
    rewrite (shows_ended q s t I) in *. unfold is_ended in *; cbn -[token_eqb] in *. use_tests.
    eexists; split; [reflexivity|]. now apply shows_key.
  - (* Hold *) took H. cbn -[token_eqb is_ended]. rewrite <- (shows_ended q s t I). use_tests.
    rewrite (shows_counts q s t gs z I), (shows_unbroken q s t I) by assumption.
    rewrite (sh_c q s I). use_tests. eexists; split; [reflexivity|].
    apply (shows_entry q s); cbn -[token_eqb]; auto; try known I.
    + intros u; cases_of u t I.
    + intros u k y; destruct (token_eqb u t) eqn:E.
      * apply token_eqb_eq in E; subst u; rewrite (sh_held q s I).
        split; (intros [J | J]; [left; congruence | right; exact J]).
      * split; [intros [J | J]; auto | auto]. inversion J; subst.
        rewrite (proj2 (token_eqb_eq _ _) eq_refl) in E; discriminate.
  - (* End *) took H. eexists; split; [reflexivity|].
    apply (shows_entry q s); cbn -[token_eqb]; auto; try known I.
    + intros u; destruct (token_eqb u t) eqn:E; [apply token_eqb_eq in E; subst; tauto|].
      split; [intros [J | J]; auto | auto]. subst u.
      rewrite (proj2 (token_eqb_eq _ _) eq_refl) in E; discriminate.
    + intros u k y; rewrite filter_In; cbn -[token_eqb].
      destruct (token_eqb u t); cbn; [split; [intros [_ J]; discriminate | easy] | tauto].
  - (* Part *) took H. eexists; split; [reflexivity|].
    apply (shows_entry q s); cbn -[token_eqb]; auto; try known I.
    + intros u; cases_of u t I.
    + intros u k y; rewrite filter_In; cbn -[token_eqb].
      destruct (token_eqb u t); cbn; [split; [intros [_ J]; discriminate | easy] | tauto].
  - (* Forget *) took H. cbn -[Nat.eqb]. eexists; split; [reflexivity|].
    destruct I; split; cbn -[Nat.eqb]; auto.
    + intros m; unfold upd; rewrite get_set. destruct (Nat.eqb m n); auto.
    + intros m; unfold upd; rewrite get_set, sh_memory0. destruct (Nat.eqb m n); auto.
    + intros m k c; unfold upd, born_of; cbn -[Nat.eqb]. rewrite sh_memory0, (Nat.eqb_sym n m).
      destruct (Nat.eqb m n) eqn:E; cbn -[Nat.eqb]; [|exact (sh_born0 m k c)].
      apply Nat.eqb_eq in E; subst m. rewrite Nat.eqb_sym.
      destruct (Nat.eqb (S _) k); cbn -[Nat.eqb]; [apply sh_c0 | exact (sh_born0 n k c)].
Qed.

(* A trace that the tables accept is a run of the model. *)
Theorem accepted ls q : qrun qstart ls = Some q ->
  exists s, run start_state (map action_of ls) = Some s /\ shows q s.
Proof.
  assert (A : forall zs q s q', shows q s -> qrun q zs = Some q' ->
    exists s', run s (map action_of zs) = Some s' /\ shows q' s').
  { induction zs as [|l zs IH]; cbn [qrun map]; intros p s p' I H.
    - exists s; split; [reflexivity | congruence].
    - destruct (qstep p l) as [p1|] eqn:E; [|discriminate].
      destruct (step_shows p s l p1 I E) as (s1 & S & I1).
      destruct (IH p1 s1 p' I1 H) as (s' & R & I').
      exists s'; split; auto. unfold Model.run in *; cbn; rewrite S; exact R. }
  intros H; exact (A ls qstart start_state q start_shows H).
Qed.

(* So two tokens of it that are valid by a common list are one token. *)
Definition qvalid q t m :=
  exists z, In (m, z) (holds (of_token (tokens q) t)) /\ cclk q (owner t) < z.
Hypothesis grains : 0 <= grain.
Hypothesis ttls : 0 <= max_ttl.

Theorem accepted_excludes ls q t t' m m' l :
  qrun qstart ls = Some q -> qvalid q t m -> qvalid q t' m' ->
  In l (list_of m) -> In l (list_of m') -> t = t'.
Proof.
  intros H (z & J & L) (z' & J' & L') K K'. destruct (accepted ls q H) as (s & R & I).
  apply (redlock nodes clients slow fast grain max_ttl clocks grains ttls list_of start_state
           (map action_of ls) s t t' m m' l); auto.
  - repeat split; reflexivity.
  - exists z; split; [now apply (sh_held q s I) | now rewrite (sh_c q s I)].
  - exists z'; split; [now apply (sh_held q s I) | now rewrite (sh_c q s I)].
Qed.
End Trace.

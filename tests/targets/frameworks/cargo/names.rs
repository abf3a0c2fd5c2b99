#[cfg(test)]
mod ünï {
    #[test]
    fn größe() {}

    #[test]
    fn r#match() {}

    #[test]
    fn größe_2() {}

    #[test]
    fn strange_ñame() {}
}

# Your own settings go here. What every user gets is in /etc/zsh/zshrc.
